/*
about = "realloc within the usable size keeps the contents"
group = "contents"
standing = "std"
source = "ISO C17, 7.22.3.5; hardened_malloc issue 77"
why = "blocks that do not move take another path"
*/
#include "harness/check.h"

CHECK {
    for (size_t size = 1; size <= 200000; size = size * 5 / 4 + 1) {
        unsigned char *block = malloc(size);
        size_t usable = malloc_usable_size(block);
        memset(block, 0x5c, size);
        for (int step = 0; step < 3; step++) {
            block = realloc(block, step == 0 ? usable : step == 1 ? size / 2 + 1 : usable + 1);
            size_t kept = step == 0 ? size : size / 2 + 1, place = 0;
            while (place < kept && block[place] == 0x5c) place++;
            EXPECT(place >= kept, "step %d of a block of %zu bytes, usable %zu, changed byte %zu", step, size, usable, place);
        }
        free(block);
    }
}

#ifdef PLANTED
void *realloc(void *block, size_t size) {
    if (block && size <= malloc_usable_size(block)) {
        *(char *)block = 0;
        return block;
    }
    return __libc_realloc(block, size);
}
#endif
