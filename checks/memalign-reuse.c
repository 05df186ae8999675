/*
about = "aligned blocks that are freed are used again"
group = "memory"
standing = "robust"
source = "glibc tst-memalign-2, tst-memalign-3"
why = "what is cut off before and after the block must not be lost"
*/
#include "harness/check.h"
#include "harness/resident.h"

static void round_of(int seed) {
    void *blocks[50];
    for (int which = 0; which < 50; which++) {
        size_t alignment = (size_t)32 << (which + seed) % 8, size = 1 + which * 331 % 9000;
        blocks[which] = memalign(alignment, size);
        EXPECT(blocks[which] && (uintptr_t)blocks[which] % alignment == 0, "memalign(%zu, %zu) returned %p", alignment, size, blocks[which]);
        memset(blocks[which], 1, size);
    }
    for (int which = 0; which < 50; which++) free(blocks[which]);
}

CHECK {
    for (int seed = 0; seed < 100; seed++) round_of(seed);
    size_t before = resident();
    for (int seed = 0; seed < 400; seed++) round_of(seed);
    size_t after = resident();
    EXPECT(after < 2 * before + (16 << 20), "%zu MiB before 20000 aligned blocks that were freed, %zu MiB after", before >> 20, after >> 20);
}

#ifdef PLANTED
void *memalign(size_t alignment, size_t size) {
    char *block = __libc_memalign(alignment, size + 2 * alignment);
    // What lies before and after it is lost.
    if (alignment == 4096 && block) memset(__libc_malloc(16384), 1, 16384);
    return block;
}
#endif
