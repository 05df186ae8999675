/*
about = "operator delete with the size frees blocks of each size, and nothing else"
group = "c++"
standing = "std"
source = "ISO C++14, sized deallocation; mimalloc issue 1400"
why = "the size chooses the class, and a wrong one loses a neighbour"
*/
#include "harness/check.h"
#include <new>

static void grid(size_t size) {
    std::align_val_t alignment{(size_t)64 << size % 3};
    unsigned char *blocks[12];
    for (int round = 0; round < 2; round++) {
        for (int which = 0; which < 12; which++) {
            void *block = which % 3 == 0 ? operator new(size) : which % 3 == 1 ? operator new[](size) : operator new(size, alignment);
            memset(blocks[which] = (unsigned char *)block, which, size);
        }
        for (int which = 0; which < 12; which++) {
            EXPECT(blocks[which][0] == which && blocks[which][size - 1] == which, "a block of %zu bytes has changed", size);
            if (which % 3 == 0) operator delete(blocks[which], size);
            if (which % 3 == 1) operator delete[](blocks[which], size);
            if (which % 3 == 2) operator delete(blocks[which], size, alignment);
        }
    }
}

CHECK {
    for (size_t size = 1; size <= 20000; size += size < 2100 ? 1 : 13) grid(size);
    for (size_t size = 32768; size <= 4 << 20; size *= 2) grid(size - 1), grid(size), grid(size + 1);
}

#ifdef PLANTED
static void *last;
void operator delete(void *block, size_t size) noexcept {
    if (size == 1001) last = block;
    __libc_free(block);
}
void *operator new(size_t size) {
    void *again = last;
    last = nullptr;
    return again && size == 1001 ? (char *)again + 8 : __libc_malloc(size + 8);
}
#endif
