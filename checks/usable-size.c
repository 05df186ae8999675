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
    for (size_t size = 1; size <= 70000; size = size * 9 / 8 + 1) {
        size_t usable[64];
        unsigned char *blocks[64];
        for (int which = 0; which < 64; which++) {
            blocks[which] = malloc(size);
            usable[which] = malloc_usable_size(blocks[which]);
            EXPECT(usable[which] >= size, "a block of %zu bytes has %zu", size, usable[which]);
            memset(blocks[which], which, usable[which]);
        }
        for (int which = 0; which < 64; which++) {
            EXPECT(blocks[which][0] == which && blocks[which][usable[which] - 1] == which,
                   "usable bytes of two blocks of %zu bytes overlap", size);
            free(blocks[which]);
        }
    }
}

#ifdef PLANTED
size_t malloc_usable_size(void *block) { return block ? 8 : 0; }
#endif
