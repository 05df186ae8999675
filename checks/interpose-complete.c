/*
about = "blocks of each function of the family can be freed"
group = "program"
standing = "gnu"
source = "glibc manual, Replacing malloc; glibc tst-interpose"
why = "a function that the library does not replace hands out blocks of the C library, which it cannot free"
*/
#include "harness/check.h"
#include <dlfcn.h>
#include <sys/wait.h>
#include <wchar.h>

extern void *pvalloc(size_t size), *valloc(size_t size);
static const char *names[] = {"malloc", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign", "valloc",
                              "pvalloc", "reallocarray", "strdup", "strndup", "wcsdup", "getcwd",
                              // operator new and new[], nothrow, aligned, and both.
                              "_Znwm", "_Znam", "_ZnwmRKSt9nothrow_t", "_ZnamRKSt9nothrow_t", "_ZnwmSt11align_val_t",
                              "_ZnamSt11align_val_t", "_ZnwmSt11align_val_tRKSt9nothrow_t", "_ZnamSt11align_val_tRKSt9nothrow_t"};

// Calls one form of operator new; returns NULL if the process has none.
static void *made_by_operator(const char *name) {
    static char nothrow;
    void *(*call)(size_t, size_t, void *) = (void *(*)(size_t, size_t, void *))dlsym(RTLD_DEFAULT, name);
    size_t second = strstr(name, "align") ? 64 : (size_t)&nothrow;
    return call ? call(5000, second, &nothrow) : NULL;
}

static void *made(int call, void *block) {
    if (call > 12) return made_by_operator(names[call]);
    if (call == 5) return posix_memalign(&block, 4096, 5000) ? NULL : block;
    return call == 0   ? malloc(5000) : call == 1 ? calloc(50, 100) : call == 2 ? realloc(NULL, 5000)
           : call == 3 ? memalign(4096, 5000) : call == 4 ? aligned_alloc(4096, 8192) : call == 6 ? valloc(5000)
           : call == 7 ? pvalloc(5000) : call == 8 ? reallocarray(NULL, 50, 100) : call == 9 ? strdup("a text")
           : call == 10 ? strndup("a text", 3) : call == 11 ? (void *)wcsdup(L"a text") : getcwd(NULL, 0);
}

CHECK {
    for (int call = 0; call < 21; call++) {
        int status = 0;
        pid_t child = fork();
        if (child < 0) UNSUPPORTED("no process");
        for (int times = 0; child == 0 && times < 100; times++) free(made(call, NULL)), free(realloc(made(call, NULL), 10));
        if (child == 0) _exit(0);
        waitpid(child, &status, 0);
        EXPECT(status == 0, "freeing a block of %s ended with signal %d, exit code %d", names[call], WTERMSIG(status), WEXITSTATUS(status));
    }
}

#ifdef PLANTED
#include <sys/mman.h>
void *pvalloc(size_t size) {
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
#endif
