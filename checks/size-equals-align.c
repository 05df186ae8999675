/*
about = "blocks whose size is their alignment are aligned, up to 1 GiB, and their memory is used again"
group = "alignment"
standing = "std"
source = "ISO C17, 7.22.3.1; mimalloc issue 700"
why = "the usual request for a page, a huge page or a slab"
seconds = 30
*/
#include "harness/check.h"
#include "harness/resident.h"

CHECK {
    size_t early = 0, late;
    for (size_t alignment = 16; alignment <= 1 << 30; alignment *= 2) {
        for (int times = 0; times < 1000; times++) {
            char *block = aligned_alloc(alignment, alignment);
            if (times == 10) early = resident();
            if (!block) UNSUPPORTED("aligned_alloc(%zu, %zu) failed", alignment, alignment);
            EXPECT((uintptr_t)block % alignment == 0, "aligned_alloc(%zu, %zu) returned %p", alignment, alignment, (void *)block);
            block[0] = block[alignment - 1] = 1;
            free(block);
        }
        late = resident();
        EXPECT(late < early + (64 << 20), "1000 blocks of %zu bytes, one at a time, took %zu MiB", alignment, (late - early) >> 20);
    }
}

#ifdef PLANTED
void *aligned_alloc(size_t alignment, size_t size) {
    return memalign(alignment == size && size > 4096 ? alignment / 2 : alignment, size + (size > 4096 ? 48 : 0));
}
#endif
