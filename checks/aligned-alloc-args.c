/*
about = "aligned_alloc never returns a block that is not aligned"
group = "alignment"
standing = "std"
source = "ISO C17, 7.22.3.1 with DR 460: an invalid alignment fails"
why = "a refusal can be handled, a block at a wrong address cannot"
*/
#include "harness/check.h"

CHECK {
    // Volatile, since compilers take it for granted that a block has an alignment that they know.
    volatile size_t wrong[] = {0, 3, 65, 96, (size_t)1 << 63}, usual = 64;
    for (size_t which = 0; which < sizeof wrong / sizeof *wrong; which++) {
        size_t alignment = wrong[which];
        errno = 0;
        void *block = aligned_alloc(alignment, 192);
        bool aligned = alignment && (uintptr_t)block % alignment == 0;
        EXPECT(!block || aligned, "aligned_alloc(%zu, 192) returned %p", alignment, block);
        if (!block) NOTE("aligned_alloc(%zu)=errno %d", alignment, errno);
        free(block);
    }
    void *block = aligned_alloc(usual, 1);
    EXPECT((uintptr_t)block % 64 == 0, "aligned_alloc(64, 1) returned %p", block);
    free(block);
}

#ifdef PLANTED
void *aligned_alloc(size_t alignment, size_t size) {
    return alignment > 64 ? __libc_malloc(size) : memalign(64, size);
}
#endif
