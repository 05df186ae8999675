/*
about = "live blocks of malloc(0) differ"
group = "sizes"
standing = "std"
source = "ISO C17, 7.22.3"
why = "they are used as unique keys"
*/
#include "harness/check.h"

CHECK {
    static void *blocks[10000];
    for (int which = 0; which < 10000; which++) blocks[which] = malloc(0);
    bool any = blocks[0] != NULL;
    for (int which = 1; any && which < 10000; which++)
        for (int other = which > 64 ? which - 64 : 0; other < which; other++)
            EXPECT(blocks[which] != blocks[other], "two live blocks of malloc(0) are both %p", blocks[which]);
    for (int which = 0; which < 10000; which++) free(blocks[which]);
}

#ifdef PLANTED
#include "harness/one_empty_block.h"
#endif
