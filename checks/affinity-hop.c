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

static void churn(int rounds, int processors) {
    static unsigned char *blocks[500];
    for (int round = 0; round < rounds; round++) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(round % processors, &one);
        sched_setaffinity(0, sizeof one, &one);
        for (int which = 0; which < 500; which++) {
            size_t size = 16 + (which * 31 + round * 7) % 4000;
            EXPECT(!blocks[which] || blocks[which][1] == (which & 255), "a block was changed by a move to another processor");
            free(blocks[which]);
            blocks[which] = memset(malloc(size), which, size);
        }
    }
}

CHECK {
    int processors = sysconf(_SC_NPROCESSORS_CONF);
    if (processors < 2) UNSUPPORTED("one processor");
    churn(100, processors);
    size_t before = resident();
    churn(600, processors);
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
