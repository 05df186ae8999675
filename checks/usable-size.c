/*
about = "all bytes that malloc_usable_size names can be written"
group = "contents"
standing = "gnu"
source = "malloc_usable_size(3)"
why = "programs that grow buffers use them without asking again"
*/
#include "harness/check.h"

CHECK {
    EXPECT(malloc_usable_size(NULL) == 0, "malloc_usable_size(NULL) is %zu", malloc_usable_size(NULL));
    for (size_t size = 1; size <= 8 << 20; size = size < 70000 ? size * 9 / 8 + 1 : size * 3 / 2) {
        size_t usable[64];
        unsigned char *blocks[64];
        int count = size < 70000 ? 64 : 8;
        for (int which = 0; which < count; which++) {
            void *block = NULL;
            if (which % 4 || posix_memalign(&block, (size_t)16 << which / 4, size)) block = malloc(size);
            blocks[which] = block;
            usable[which] = malloc_usable_size(blocks[which]);
            EXPECT(usable[which] >= size, "a block of %zu bytes has %zu", size, usable[which]);
            memset(blocks[which], which, usable[which]);
        }
        for (int which = 0; which < count; which++) {
            EXPECT(blocks[which][0] == which && blocks[which][usable[which] - 1] == which,
                   "usable bytes of two blocks of %zu bytes overlap", size);
            free(blocks[which]);
        }
    }
}

#ifdef PLANTED
// Of a block with a mapping of its own it counts a page too many.
size_t malloc_usable_size(void *block) {
    size_t head = block ? ((size_t *)block)[-1] : 0;
    bool is_mapped = head & 2;
    return block ? (head & ~7ul) - (is_mapped ? 16 : 8) + (is_mapped ? 4096 : 0) : 0;
}
#endif
