/*
about = "realloc of an aligned block keeps its contents"
group = "contents"
standing = "robust"
source = "ISO C17, 7.22.3.5"
why = "the block is larger than its request, and the header lies elsewhere"
*/
#include "harness/check.h"

CHECK {
    for (size_t alignment = 16; alignment <= 1 << 20; alignment *= 4) {
        for (size_t size = 1; size <= 300000; size = size * 7 + 3) {
            unsigned char *block = NULL;
            if (posix_memalign((void **)&block, alignment, size)) UNSUPPORTED("posix_memalign(%zu, %zu) failed", alignment, size);
            for (size_t place = 0; place < size; place++) block[place] = (unsigned char)(place * 31 + size);
            block = realloc(block, size * 2 + 5000);
            for (size_t place = 0; place < size; place++)
                if (block[place] != (unsigned char)(place * 31 + size)) {
                    EXPECT(false, "byte %zu of a block of %zu, aligned to %zu, has changed", place, size, alignment);
                    break;
                }
            free(block);
        }
    }
}

#ifdef PLANTED
void *realloc(void *block, size_t size) {
    unsigned char *moved = __libc_realloc(block, size);
    if (block && (uintptr_t)block % 4096 == 0) moved[0] ^= 1;
    return moved;
}
#endif
