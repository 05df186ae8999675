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
    size_t sizes[] = {PTRDIFF_MAX, (size_t)PTRDIFF_MAX + 1, SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 15, SIZE_MAX - 4095};
    void *small = malloc(100), *block;
    errno = 0;
    for (int which = 0; which < 6; which++) {
        size_t size = sizes[which];
        refused("malloc", size, malloc(size));
        refused("calloc", size, calloc(1, size));
        refused("realloc", size, realloc(small, size));
        refused("memalign", size, memalign(64, size));
        EXPECT(posix_memalign(&block, 64, size) == ENOMEM, "posix_memalign of %zu bytes does not return ENOMEM", size);
    }
}

#ifdef PLANTED
void *malloc(size_t size) {
    return __libc_malloc(size + 16);
}
#endif
