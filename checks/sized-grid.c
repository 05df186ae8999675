/*
about = "free_sized and free_aligned_sized free blocks of each size and alignment, and nothing else"
group = "sizes"
standing = "std"
source = "ISO C23, 7.24.3.4; mimalloc issue 1400, glibc tst-free-sized"
why = "the size chooses the class, and a wrong one loses a neighbour"
full = true
*/
#include "harness/check.h"

extern void free_sized(void *block, size_t size) __attribute__((weak));
extern void free_aligned_sized(void *block, size_t alignment, size_t size) __attribute__((weak));

static void grid(size_t size, size_t alignment) {
    unsigned char *blocks[12];
    for (int round = 0; round < 2; round++) {
        for (int which = 0; which < 12; which++)
            memset(blocks[which] = alignment ? aligned_alloc(alignment, size) : malloc(size), which, size);
        for (int which = 0; which < 12; which++) {
            EXPECT(blocks[which][0] == which && blocks[which][size - 1] == which, "a block of %zu bytes has changed", size);
            if (alignment) free_aligned_sized(blocks[which], alignment, size);
            else free_sized(blocks[which], size);
        }
    }
}

CHECK {
    if (!free_sized || !free_aligned_sized) UNSUPPORTED("neither the allocator nor the C library has free_sized");
    for (size_t size = 1; size <= 20000; size++) grid(size, 0);
    for (size_t size = 32768; size <= 8 << 20; size *= 2) grid(size - 1, 0), grid(size, 0), grid(size + 1, 0);
    for (size_t alignment = 16; alignment <= 4 << 20; alignment *= 2)
        for (size_t count = 1; count * alignment <= 8 << 20 && count < 2000; count = count * 3 + 1) grid(count * alignment, alignment);
}

#ifdef PLANTED
static char *last;
void free_sized(void *block, size_t size) {
    if (size == 1001) last = block;
    free(block);
}
void free_aligned_sized(void *block, size_t alignment, size_t size) { (void)alignment, (void)size, free(block); }
void *malloc(size_t size) {
    char *again = last;
    last = NULL;
    return again && size == 1001 ? again + 8 : __libc_malloc(size + 8);
}
#endif
