/*
about = "requests that no memory can hold return NULL with ENOMEM"
group = "sizes"
standing = "std"
source = "POSIX.1-2024, malloc; glibc: no object is larger than PTRDIFF_MAX"
why = "a size that wrapped below zero must not become a small block"
*/
#include "harness/check.h"

static void refused(const char *call, size_t size, void *block) {
    EXPECT(!block, "%s of %zu bytes returned a block", call, size);
    EXPECT(block || errno == ENOMEM, "%s of %zu bytes left errno %d", call, size, errno);
    errno = 0;
}

CHECK {
    size_t most = PTRDIFF_MAX, tib = (size_t)1 << 40;
    size_t sizes[] = {
#ifdef __x86_64__
        128 * tib, // All that a program can address; elsewhere it may be twice as much.
#endif
        256 * tib, most, most + 1, SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 15, SIZE_MAX - 16, SIZE_MAX - 4095, SIZE_MAX - 4096};
    void *small = malloc(100), *block;
    errno = 0;
    for (int which = 0; which < (int)(sizeof sizes / sizeof *sizes); which++) {
        size_t size = sizes[which];
        free(malloc(100));
        errno = 0;
        refused("malloc", size, malloc(size));
        refused("calloc", size, calloc(1, size));
        refused("realloc", size, realloc(small, size));
        refused("reallocarray", size, reallocarray(small, 1, size));
        refused("aligned_alloc", size, aligned_alloc(64, size / 64 * 64));
        EXPECT(posix_memalign(&block, 64, size) == ENOMEM, "posix_memalign of %zu bytes does not return ENOMEM", size);
    }
}

#ifdef PLANTED
void *malloc(size_t size) {
    return __libc_malloc(size + 16);
}
#endif
