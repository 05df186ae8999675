// An allocator that does everything right, by handing on to glibc's own. The part `#ifdef PLANTED` of a check defines what it
// breaks in a function of the same name, which comes before these.
#ifndef PLANTED
#define PLANTED
#endif
#include "check.h"
#include <dlfcn.h>

#define WEAK __attribute__((weak))

// Of the harness: a planted library has all of its check, and no harness.
char **heapmark_words;

WEAK void *malloc(size_t size) { return __libc_malloc(size); }
WEAK void *calloc(size_t count, size_t size) { return __libc_calloc(count, size); }
WEAK void *realloc(void *block, size_t size) { return __libc_realloc(block, size); }
WEAK void free(void *block) { __libc_free(block); }
WEAK void *memalign(size_t alignment, size_t size) { return __libc_memalign(alignment, size); }
WEAK void *reallocarray(void *block, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, bytes);
}
WEAK void *aligned_alloc(size_t alignment, size_t size) {
    if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
        errno = EINVAL;
        return NULL;
    }
    return __libc_memalign(alignment, size);
}
WEAK int posix_memalign(void **place, size_t alignment, size_t size) {
    if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) return EINVAL;
    int before = errno;
    void *block = __libc_memalign(alignment, size);
    errno = before;
    if (block) *place = block;
    return block ? 0 : ENOMEM;
}
WEAK size_t malloc_usable_size(void *block) {
    size_t (*next)(void *) = (size_t (*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
    return next(block);
}
