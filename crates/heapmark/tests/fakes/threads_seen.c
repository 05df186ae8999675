/* Serves libc's blocks, and counts in the file COUNTS which thread calls: calls on the main thread, calls on others, threads that were
   created, and calls while the C library knew of more than one thread. */
#define _GNU_SOURCE
#include "forward.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_memalign(size_t alignment, size_t size);
/* Before glibc 2.32 there is none. */
extern char __libc_single_threaded __attribute__((weak));

enum { ON_MAIN, ON_OTHERS, CREATED, THREADED, KINDS = 5 };
static atomic_ulong *counts;

__attribute__((constructor)) static void open_counts(void) {
    const char *path = getenv("COUNTS");
    int fd = path ? open(path, O_RDWR) : -1;
    void *map = mmap(NULL, KINDS * sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED) counts = map;
}

static void note(void) {
    if (!counts) return;
    atomic_fetch_add(&counts[syscall(SYS_gettid) == getpid() ? ON_MAIN : ON_OTHERS], 1);
    if (&__libc_single_threaded && !__libc_single_threaded) atomic_fetch_add(&counts[THREADED], 1);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*entry)(void *), void *argument) {
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
    if (counts) atomic_fetch_add(&counts[CREATED], 1);
    return create(thread, attributes, entry, argument);
}

void *malloc(size_t size) { note(); return __libc_malloc(size); }
void free(void *block) { note(); __libc_free(block); }
void *calloc(size_t count, size_t size) { note(); return __libc_calloc(count, size); }
void *realloc(void *block, size_t size) { note(); return __libc_realloc(block, size); }
void *memalign(size_t alignment, size_t size) { note(); return __libc_memalign(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { note(); return __libc_memalign(alignment, size); }
int posix_memalign(void **block, size_t alignment, size_t size) {
    note();
    *block = __libc_memalign(alignment, size);
    return *block ? 0 : ENOMEM;
}
