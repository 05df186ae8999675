/*
about = "from how many of 64 blocks a byte this far behind cannot be reached"
group = "overflow"
source = "guard pages: DieHarder, hardened_malloc, isoalloc, scudo"
why = "the chance that an overflow meets a guard before it meets data"
ends = "values"
trials = 1
*/
#include "../harness/misuse.h"

MISUSE {
    char *row[64], found[160];
    size_t distances[] = {1, 16, 256, 4096, 16384, 65536, 262144, 1048576};
    int used = 0;
    for (int i = 0; i < 64; i++) row[i] = take(size);
    for (int which = 0; which < 8; which++) {
        int guarded = 0;
        for (int i = 0; i < 64; i++) guarded += !is_mapped(row[i] + malloc_usable_size(row[i]) - 1 + distances[which]);
        used += snprintf(found + used, sizeof found - used, "%d ", guarded);
    }
    NOTE("out of reach, of 64, by distance 1, 16, 256, 4K, 16K, 64K, 256K, 1M=%s", found);
}
