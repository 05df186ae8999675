/* One of a series of builds: WORK makes each malloc slower by so many dependent multiplications, and PAD per cent of the most
   that was ever live is held besides. For programs of one thread. */
#define _GNU_SOURCE
#include "own.h"
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#ifndef WORK
#define WORK 0
#endif
#ifndef PAD
#define PAD 0
#endif

static size_t live, most, held;
static char *ballast;

static void work(void) {
    uint64_t x = 1;
    for (int i = 0; i < WORK; i++) {
        x = x * 3 + 1;
        __asm__ volatile("" : "+r"(x));
    }
}

void *malloc(size_t size) {
    void *block = own_malloc(size);
    work();
    if (!block) return block;
    /* Counted in every build, so that they differ in nothing else. */
    size_t now = __atomic_add_fetch(&live, own_size(block), __ATOMIC_RELAXED);
    if (now <= most) return block;
    most = now;
    if (!ballast) {
        void *map = mmap(NULL, (size_t)1 << 32, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (map == MAP_FAILED) return block;
        madvise(map, (size_t)1 << 32, MADV_NOHUGEPAGE);
        ballast = map;
    }
    while (held < most / 100 * PAD) ballast[held] = 1, held += 4096;
    return block;
}

void free(void *block) {
    if (block && own_has(block)) __atomic_sub_fetch(&live, own_size(block), __ATOMIC_RELAXED);
    own_free(block);
}
