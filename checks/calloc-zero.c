/*
about = "calloc returns zeros, also in memory that was used before"
group = "contents"
standing = "std"
source = "ISO C17, 7.22.3.2"
why = "the shortcut for fresh pages must not be taken for used ones"
*/
#include "harness/check.h"

CHECK {
    for (int round = 0; round < 3; round++) {
        for (size_t size = 1; size <= 2 << 20; size = size * 3 / 2 + 1) {
            unsigned char *blocks[16];
            int count = size > 100000 ? 2 : 16;
            for (int which = 0; which < count; which++) memset(blocks[which] = malloc(size), 0xa7, size);
            for (int which = 0; which < count; which++) free(blocks[which]);
            for (int which = 0; which < count; which++) {
                blocks[which] = calloc(which % 2 ? size : 1, which % 2 ? 1 : size);
                size_t place = 0;
                while (place < size && blocks[which][place] == 0) place++;
                EXPECT(place == size, "byte %zu of a calloc of %zu bytes is %d", place, size, blocks[which][place]);
            }
            for (int which = 0; which < count; which++) free(blocks[which]);
        }
    }
}

#ifdef PLANTED
void *calloc(size_t count, size_t size) {
    char *block = __libc_malloc(count * size);
    memset(block, 0, count * size < 5000 ? count * size : 5000);
    return block;
}
#endif
