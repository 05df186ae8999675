/*
about = "realloc keeps the bytes that both sizes have, and no block that it has moved"
group = "contents"
standing = "std"
source = "ISO C17, 7.22.3.5"
why = "each path copies by itself: in place, moved, by page tables"
*/
#include "harness/check.h"
#include "harness/resident.h"

CHECK {
    uint64_t random = 1;
    size_t early = 0;
    for (int chain = 0; chain < 400; chain++) {
        size_t size = 0;
        unsigned char *block = NULL;
        for (int step = 0; step < 14; step++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            size_t next = 1 + (random >> 33) % (1u << (2 + (random >> 20) % 20)), both = next < size ? next : size;
            block = realloc(block, next);
            for (size_t place = 0; place < both; place++)
                if (block[place] != (unsigned char)(chain + place * 7)) {
                    EXPECT(false, "realloc from %zu to %zu bytes changed byte %zu", size, next, place);
                    break;
                }
            for (size_t place = 0; place < next; place++) block[place] = (unsigned char)(chain + place * 7);
            size = next;
        }
        free(block);
        if (chain == 100) early = resident();
    }
    size_t late = resident();
    EXPECT(late < early + (64 << 20), "%zu MiB after 100 chains of blocks, %zu MiB after 400", early >> 20, late >> 20);
}

#ifdef PLANTED
void *realloc(void *block, size_t size) {
    char *moved = __libc_malloc(size);
    size_t has = block ? malloc_usable_size(block) : 0;
    // It forgets some bytes, and the old block.
    if (block) memcpy(moved, block, (has < size ? has : size) & ~(size_t)15);
    return moved;
}
#endif
