/*
about = "16 bytes behind a live block are changed, if its neighbour is free"
group = "overflow"
source = "snmalloc corruption_detection; CWE-122"
why = "the neighbour is in a list: the next calls follow what was written"
forms = ["naive", "informed"]
*/
#include "../harness/misuse.h"
#include <sys/mman.h>

MISUSE {
    char *row[64], *map = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *past = NULL, *forged[2] = {map + 4096, map + 4096};
    for (int i = 0; i < 64; i++) row[i] = take(size);
    victim(map, 1 << 16);
    for (int i = 1; i < 64; i += 2) give(row[i]);
    for (size_t i = 0, nearest = 65; i < 64; i += 2) {
        char *end = row[i] + malloc_usable_size(row[i]);
        for (int j = 1; j < 64; j += 2)
            if (end <= row[j] && (size_t)(row[j] - end) < nearest) past = end, nearest = row[j] - end;
    }
    if (!past) UNSUPPORTED("no free neighbour within 64 bytes"); // A header or a canary may lie between.
    misuse();
    if (wrong && !informed) poke(past, 16);
    if (wrong && informed) copy(past, (char *)forged, 16);
    spill();
}
