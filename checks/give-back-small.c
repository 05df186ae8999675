/*
about = "how much memory is held after 200000 blocks of 1 KiB were freed, and no block above them lives"
group = "memory"
standing = "observe"
source = "malloc_trim(3), the decay of jemalloc, the purge delay of mimalloc"
why = "servers that have had a peak"
full = true
seconds = 30
*/
#include "harness/check.h"
#include "harness/resident.h"

static char *blocks[200000];

static void held(const char *when, size_t before, size_t peak) {
    size_t now = resident();
    NOTE("held %s=%zu %%", when, now > before ? (now - before) * 100 / (peak - before) : 0);
}

CHECK {
    size_t before = resident();
    for (int which = 0; which < 200000; which++) memset(blocks[which] = malloc(1 << 10), 1, 1 << 10);
    size_t peak = resident();
    for (int which = 0; which < 200000; which++) free(blocks[which]);
    held("at once", before, peak);
    usleep(1500000);
    held("after 1.5 s", before, peak);
    sleep(10);
    held("after 11.5 s", before, peak);
    for (int times = 0; times < 2000; times++) free(malloc(times * 13));
    held("after 2000 more calls", before, peak);
    malloc_trim(0);
    held("after malloc_trim", before, peak);
}

#ifdef PLANTED

#endif
