/*
about = "requests of no bytes return NULL, or blocks that differ and can be freed"
group = "sizes"
standing = "std"
source = "ISO C17, 7.22.3 (the result is implementation-defined)"
why = "programs compare such pointers, and free each of them once"
*/
#include "harness/check.h"

CHECK {
    void *blocks[7] = {malloc(0), malloc(0), calloc(0, 8), calloc(8, 0), realloc(NULL, 0)};
    EXPECT(posix_memalign(&blocks[5], 64, 0) == 0, "posix_memalign(64, 0) failed");
    blocks[6] = aligned_alloc(64, 0);
    for (int one = 0; one < 7; one++)
        for (int other = one + 1; other < 7; other++)
            EXPECT(!blocks[one] || blocks[one] != blocks[other], "two blocks of no bytes are one: %p", blocks[one]);
    NOTE("malloc(0)=%s", blocks[0] ? "a block" : "NULL");
    for (int one = 0; one < 7; one++) free(blocks[one]);
}

#ifdef PLANTED
#include "harness/one_empty_block.h"
#endif
