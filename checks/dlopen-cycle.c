/*
about = "libraries can be loaded, swap blocks with the program, and be unloaded again"
group = "program"
standing = "gnu"
source = "dlopen(3); plug-ins, and modules of languages"
why = "the dynamic linker allocates by malloc, and tables of loaded libraries change"
*/
#include "harness/check.h"
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>

// Of the library of C++: makes a block, or grows the one that it is given.
static void swap(void *library) {
    char *(*demangle)(const char *, char *, size_t *, int *) = dlsym(library, "__cxa_demangle");
    size_t has = 8;
    int status = -1;
    char *name = demangle ? demangle("_ZN3one3two5threeEidPc", malloc(has), &has, &status) : NULL;
    EXPECT(!demangle || (status == 0 && strcmp(name, "one::two::three(int, double, char*)") == 0), "the swapped block is wrong");
    free(name);
}

static void *cycle(void *names) {
    for (int times = 0; times < 20; times++)
        for (const char **name = names; *name; name++) {
            void *library = dlopen(*name, RTLD_NOW);
            if (!library) free(strdup(dlerror()));
            if (library) swap(library), dlclose(library);
        }
    return NULL;
}

CHECK {
    static const char *names[] = {"libresolv.so.2", "libthread_db.so.1", "libanl.so.1", "libstdc++.so.6", "no-such-library.so", NULL};
    pthread_t thread;
    cycle(names);
    if (pthread_create(&thread, NULL, cycle, names)) UNSUPPORTED("no thread");
    pthread_join(thread, NULL);
    pid_t child = fork();
    int status = 0;
    if (child == 0) swap(dlopen("libstdc++.so.6", RTLD_NOW | RTLD_DEEPBIND)), _exit(0);
    waitpid(child, &status, 0);
    // Then the library finds the malloc of the C library first: a limit of preloading.
    NOTE("RTLD_DEEPBIND=%s", status ? "crash" : "works");
}

#ifdef PLANTED
void *realloc(void *block, size_t size) {
    char *moved = __libc_malloc(size);
    return block ? memcpy(moved, block, 8) : moved;
}
void free(void *block) {
    // As a table of loaded libraries that has become too small.
    static int frees;
    if (++frees == 400) __builtin_trap();
    __libc_free(block);
}
#endif
