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
static char none[16];
void *malloc(size_t size) {
    extern void *__libc_malloc(size_t);
    return size ? __libc_malloc(size) : none;
}
void free(void *block) {
    extern void __libc_free(void *);
    if (block != none) __libc_free(block);
}
#endif
