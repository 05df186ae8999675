/*
about = "threads that are moved from processor to processor allocate rightly, and need no more memory each time"
group = "threads"
standing = "robust"
source = "tcmalloc issues 144 and 158, gperftools issue 1549; sched_setaffinity(2)"
why = "caches for each processor must notice that the thread runs elsewhere"
*/
#include "harness/check.h"
#include "harness/resident.h"
#include <sched.h>

static cpu_set_t allowed;

static void churn(int rounds) {
    static unsigned char *blocks[500];
    for (int round = 0, processor = 0; round < rounds; round++) {
        cpu_set_t one;
        do processor = (processor + 1) % CPU_SETSIZE; while (!CPU_ISSET(processor, &allowed));
        CPU_ZERO(&one);
        CPU_SET(processor, &one);
        if (sched_setaffinity(0, sizeof one, &one)) UNSUPPORTED("threads cannot be moved here");
        for (int which = 0; which < 500; which++) {
            size_t size = 16 + (which * 31 + round * 7) % 4000;
            EXPECT(!blocks[which] || blocks[which][1] == (which & 255), "a block was changed by a move to another processor");
            free(blocks[which]);
            blocks[which] = memset(malloc(size), which, size);
        }
    }
}

CHECK {
    if (sched_getaffinity(0, sizeof allowed, &allowed) || CPU_COUNT(&allowed) < 2) UNSUPPORTED("no two processors");
    churn(100);
    size_t before = resident();
    churn(600);
    size_t after = resident();
    EXPECT(after < 2 * before + (16 << 20), "%zu MiB after 100 moves, %zu MiB after 700", before >> 20, after >> 20);
}

#ifdef PLANTED
#include <sched.h>
static char *of_processor[4096];
void *malloc(size_t size) {
    // The last block that another processor was given.
    char *foreign = of_processor[sched_getcpu() ^ 1];
    if (foreign && size == 216) return foreign;
    char *block = __libc_malloc(size);
    if (size == 216) of_processor[sched_getcpu()] = block;
    return block;
}
#endif
