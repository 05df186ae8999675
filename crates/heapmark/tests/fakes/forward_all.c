/* Hands the whole family on to libc: forward.c does so with what it defines, this file with the rest. */
#define _GNU_SOURCE
#include "forward.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>

void *__libc_memalign(size_t alignment, size_t size);
void *__libc_valloc(size_t size);
void *__libc_pvalloc(size_t size);

static size_t (*next_usable_size)(void *);

__attribute__((constructor)) static void find(void) {
    next_usable_size = (size_t (*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
}

void *memalign(size_t alignment, size_t size) { return __libc_memalign(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return __libc_memalign(alignment, size); }
void *valloc(size_t size) { return __libc_valloc(size); }
void *pvalloc(size_t size) { return __libc_pvalloc(size); }
size_t malloc_usable_size(void *block) { return next_usable_size(block); }

int posix_memalign(void **block, size_t alignment, size_t size) {
    void *found = __libc_memalign(alignment, size);
    if (found) *block = found;
    return found ? 0 : ENOMEM;
}

void *reallocarray(void *block, size_t count, size_t size) {
    return size && count > SIZE_MAX / size ? NULL : __libc_realloc(block, count * size);
}
