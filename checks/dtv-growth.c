/*
about = "libraries with thread-local storage can be loaded while threads allocate"
group = "threads"
standing = "gnu"
source = "glibc allocates the tables and blocks of thread-local storage by malloc, at the first access"
why = "malloc may be called from inside an access to thread-local storage, also the allocator's own"
full = true
*/
#include "harness/check.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

static void *volatile libraries[24];

// The library of C++ has a thread-local variable; looking for it makes this thread's copy.
static void *body(void *unused) {
    for (int which = 0; which < 24; which++) {
        while (!libraries[which]) free(malloc(10 + which * 100));
        char *variable = dlsym(libraries[which], "_ZSt15__once_callable");
        if (variable) *(void **)variable = NULL;
    }
    return unused;
}

CHECK {
    Dl_info where;
    void *first = dlopen("libstdc++.so.6", RTLD_NOW);
    if (!first || !dladdr(dlsym(first, "__cxa_demangle"), &where)) UNSUPPORTED("no libstdc++");
    pthread_t threads[4];
    for (int which = 0; which < 4; which++)
        if (pthread_create(&threads[which], NULL, body, NULL)) UNSUPPORTED("no thread");
    for (int which = 0; which < 24; which++) {
        // A copy is another library. It stays open: by this path the linker knows it.
        char path[64];
        int copy = memfd_create("copy", 0), file = open(where.dli_fname, O_RDONLY);
        while (sendfile(copy, file, NULL, 1 << 20) > 0) {}
        snprintf(path, sizeof path, "/proc/self/fd/%d", copy);
        libraries[which] = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!libraries[which]) UNSUPPORTED("%s", dlerror());
        close(file);
    }
    for (int which = 0; which < 4; which++) pthread_join(threads[which], NULL);
}

#ifdef PLANTED
static void *asked(void *caller, void *block) {
    Dl_info where;
    bool by_linker = dladdr(caller, &where) && strstr(where.dli_fname, "ld-linux");
    if (by_linker && getpid() != gettid()) __builtin_trap();
    return block;
}
void *malloc(size_t size) { return asked(__builtin_return_address(0), __libc_malloc(size)); }
void *realloc(void *block, size_t size) { return asked(__builtin_return_address(0), __libc_realloc(block, size)); }
#endif
