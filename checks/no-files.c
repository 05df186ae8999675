/*
about = "the library works if no file can be opened: no /proc, no /sys, no /dev/urandom"
group = "environment"
standing = "robust"
source = "chroot, containers without mounts, and services of systemd with ProcSubset= or ProtectProc="
why = "what a library looks up at its start may not be there"
*/
#include "harness/check.h"
#include "harness/forbid.h"
#include <pthread.h>

static void first(int words, char **word) {
    // Only this check of its program, and before the constructors of libraries, as their files are loaded.
    if (words > 1 && strcmp(word[1], "no-files") != 0) return;
    forbid(SYS_openat, ENOENT);
#ifdef SYS_open
    forbid(SYS_open, ENOENT);
#endif
}
FIRST(first);

static void *body(void *unused) {
    for (size_t size = 1; size < 32 << 20; size = size * 2 + 1) {
        char *block = malloc(size);
        EXPECT(block, "malloc(%zu) failed", size);
        free(block);
    }
    return unused;
}

CHECK {
    pthread_t thread;
    body(NULL);
    if (pthread_create(&thread, NULL, body, NULL)) UNSUPPORTED("no thread");
    pthread_join(thread, NULL);
}

#ifdef PLANTED
#include <fcntl.h>
void *malloc(size_t size) {
    static int processors;
    if (!processors && size == 255) {
        processors = open("/proc/cpuinfo", O_RDONLY);
        if (processors < 0) abort();
        close(processors);
    }
    return __libc_malloc(size);
}
#endif
