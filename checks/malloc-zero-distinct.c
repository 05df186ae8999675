/*
about = "live blocks of malloc(0) differ"
group = "sizes"
standing = "std"
source = "ISO C17, 7.22.3"
why = "they are used as unique keys"
*/
#include "harness/check.h"

static int by_address(const void *one, const void *other) {
    uintptr_t a = (uintptr_t)*(void **)one, b = (uintptr_t)*(void **)other;
    return (a > b) - (a < b);
}

CHECK {
    static void *blocks[10000];
    for (int which = 0; which < 10000; which++) blocks[which] = malloc(0);
    qsort(blocks, 10000, sizeof *blocks, by_address);
    for (int which = 1; which < 10000; which++)
        EXPECT(!blocks[which] || blocks[which] != blocks[which - 1], "two live blocks of malloc(0) are both %p", blocks[which]);
    for (int which = 0; which < 10000; which++) free(blocks[which]);
}

#ifdef PLANTED
#include "harness/one_empty_block.h"
#endif
