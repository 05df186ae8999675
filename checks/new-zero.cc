/*
about = "operator new of no bytes returns blocks that differ and can be deleted"
group = "c++"
standing = "std"
source = "ISO C++17, [basic.stc.dynamic.allocation]/2: not null, and unlike any other"
why = "empty objects have addresses, which programs compare"
*/
#include "harness/check.h"
#include <new>

CHECK {
    void *blocks[1000];
    for (int which = 0; which < 1000; which++) {
        blocks[which] = which % 2 ? operator new(0) : operator new[](0);
        EXPECT(blocks[which], "%s(0) returned NULL", which % 2 ? "new" : "new[]");
        for (int other = 0; other < which; other++)
            EXPECT(blocks[which] != blocks[other], "two live blocks of no bytes are one: %p", blocks[which]);
    }
    for (int which = 0; which < 1000; which++)
        if (which % 2) operator delete(blocks[which]);
        else operator delete[](blocks[which]);
}

#ifdef PLANTED
static char none[16];
void *operator new(size_t size) { return size ? __libc_malloc(size) : none; }
void operator delete(void *block) noexcept {
    if (block != none) __libc_free(block);
}
#endif
