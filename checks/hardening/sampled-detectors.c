/*
about = "which share of reads behind a block, and of a freed block, ends the process; and what a block costs"
group = "overflow"
source = "GWP-ASan: scudo, tcmalloc's guarded sampling, jemalloc's guards; run it on scudo-guarded and jemalloc-guarded"
why = "what a detector finds that guards only some blocks"
ends = "values"
trials = 1
sizes = [24, 4000]
full = true
seconds = 45
*/
#include "../harness/misuse.h"
#include <sys/mman.h>
#include <time.h>

MISUSE {
    struct timespec from, to;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    for (int i = 0; i < 1000000; i++) {
        char *volatile block = malloc(size);
        free(block);
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    NOTE("ns of a malloc and its free=%ld", ((to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec - from.tv_nsec) / 1000000);
    long *reads = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int is_freed = 0; is_freed < 2; is_freed++) {
        long ended = 0;
        *reads = 0;
        for (int process = 0; process < (wrong ? 100 : 5); process++) {
            // A sampler that counts blocks would otherwise be at the same one in each child.
            for (int i = 0; i < 1000; i++) free(malloc(size));
            const char *how = apart();
            ended += how && (strcmp(how, "fault") == 0 || strcmp(how, "stopped") == 0);
            for (int i = 0; !how && i < 1000; i++, (*reads)++) {
                volatile char *block = malloc(size);
                if (is_freed && wrong) free((char *)block), (void)*block;
                else (void)block[wrong ? malloc_usable_size((char *)block) : 0], free((char *)block);
            }
            if (!how) leave();
        }
        RATE(is_freed ? "reads of freed blocks that end it" : "reads behind blocks that end it", ended, *reads + ended);
    }
}
