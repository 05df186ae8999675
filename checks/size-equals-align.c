/*
about = "blocks whose size is their alignment are aligned, up to 64 MiB"
group = "alignment"
standing = "std"
source = "ISO C17, 7.22.3.1; mimalloc issue 700"
why = "the usual request for a page, a huge page or a slab"
*/
#include "harness/check.h"

CHECK {
    for (size_t alignment = 16; alignment <= 64 << 20; alignment *= 2) {
        for (int times = 0; times < 100; times++) {
            char *block = aligned_alloc(alignment, alignment);
            if (!block) UNSUPPORTED("aligned_alloc(%zu, %zu) failed", alignment, alignment);
            EXPECT((uintptr_t)block % alignment == 0, "aligned_alloc(%zu, %zu) returned %p", alignment, alignment, (void *)block);
            block[0] = block[alignment - 1] = 1;
            free(block);
        }
    }
}

#ifdef PLANTED
void *aligned_alloc(size_t alignment, size_t size) {
    return memalign(alignment == size && size > 4096 ? alignment / 2 : alignment, size + (size > 4096 ? 48 : 0));
}
#endif
