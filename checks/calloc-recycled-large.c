/*
about = "large blocks of calloc are zeros after a cache has kept them"
group = "contents"
standing = "std"
source = "ISO C17, 7.22.3.2; rpmalloc pull request 371"
why = "caches of huge blocks skip the kernel, and with it its zeros"
*/
#include "harness/check.h"

CHECK {
    size_t sizes[] = {256 << 10, 1 << 20, 2 << 20, 8 << 20, 64 << 20};
    for (int round = 0; round < 3; round++) {
        for (int which = 0; which < 5; which++) {
            size_t size = sizes[which] - (round == 1 ? 4096 : 0);
            unsigned char *block = malloc(size);
            if (!block) UNSUPPORTED("malloc(%zu) failed", size);
            memset(block, 0xa7, size);
            free(block);
            block = calloc(1, size);
            size_t place = 0;
            while (place < size && block[place] == 0) place++;
            EXPECT(place == size, "byte %zu of a calloc of %zu bytes is not zero", place, size);
            free(block);
        }
    }
}

#ifdef PLANTED
static char *kept;
void *malloc(size_t size) {
    if (size < 1 << 20 || size > 8 << 20) return __libc_malloc(size);
    if (!kept) kept = __libc_malloc(8 << 20);
    return kept;
}
void *calloc(size_t count, size_t size) {
    return count * size < 1 << 20 || count * size > 8 << 20 ? __libc_calloc(count, size) : malloc(count * size);
}
void free(void *block) {
    if (block != kept) __libc_free(block);
}
#endif
