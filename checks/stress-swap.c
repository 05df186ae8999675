/*
about = "blocks that threads swap, grow and free are never two owners' at once"
group = "contents"
standing = "std"
source = "ISO C17, 7.22.3; the stress test of mimalloc"
why = "sizes, threads that end and foreign frees together find what each alone does not"
*/
#include "harness/check.h"
#include <pthread.h>

struct block { size_t size, owner, more[]; };
static struct block *shared[1000];

static void end(struct block *block) {
    if (!block) return;
    size_t words = block->size / 8 - 2;
    for (size_t place = 0; place < words; place++)
        if (block->more[place] != (block->owner ^ place)) {
            EXPECT(0, "word %zu of a block of %zu bytes has changed", place, block->size);
            break;
        }
    free(block);
}

static void *work(void *seed) {
    uint64_t random = (uintptr_t)seed;
    for (int times = 0; times < 20000; times++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t size = (8 + (random >> 33) % 120) * ((random >> 20) % 500 == 0 ? 1000 : (random >> 20) % 50 == 0 ? 100 : 1) & ~7ul;
        size = size < 24 ? 24 : size;
        struct block *block;
        if ((random >> 24) % 20 || posix_memalign((void **)&block, 64, size)) block = malloc(size);
        if ((random >> 40) % 10 == 0) block = realloc(block, size += 64);
        block->size = size, block->owner = random;
        for (size_t place = 0; place < size / 8 - 2; place++) block->more[place] = random ^ place;
        end((random >> 50) % 4 ? __atomic_exchange_n(&shared[(random >> 42) % 1000], block, __ATOMIC_ACQ_REL) : block);
    }
    return NULL;
}

CHECK {
    for (uintptr_t round = 0; round < 25; round++) {
        pthread_t threads[4];
        for (int which = 0; which < 4; which++) pthread_create(&threads[which], NULL, work, (void *)(round * 4 + which));
        for (int which = 0; which < 4; which++) pthread_join(threads[which], NULL);
    }
}

#ifdef PLANTED
void *realloc(void *block, size_t size) {
    static char *kept;
    char *moved = __libc_realloc(block, size);
    if (size == 104) return __atomic_exchange_n(&kept, moved, __ATOMIC_ACQ_REL), moved;
    if (kept) kept[16] ^= 1;
    return moved;
}
#endif
