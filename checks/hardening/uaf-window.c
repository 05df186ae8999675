/*
about = "after how many pairs of calls a write to a freed block is noticed"
group = "use after free"
source = "quarantines: scudo, isoalloc, hardened_malloc"
why = "the length of a quarantine, in calls"
ends = "values"
trials = 1
sizes = [24, 4000]
full = true
*/
#include "../harness/misuse.h"

MISUSE {
    static const int counts[] = {0, 1, 16, 256, 4096, 65536};
    char *row[64], found[100];
    for (int i = 0; i < 64; i++) row[i] = take(size);
    for (int i = 0; i < 64; i += 2) give(row[i]);
    for (int is_other = 0; is_other < 2; is_other++) {
        for (int which = 0, used = 0; which < 6; which++) {
            const char *end = apart();
            if (end) used += snprintf(found + used, sizeof found - used, "%s ", end);
            if (end) continue;
            for (int i = 0; i < counts[which]; i++) free(malloc(is_other ? size * (2 + i % 3) : size));
            if (wrong) poke(row[30], 16);
            for (int i = 0; i < 512; i++) (void)!malloc(size);
            leave();
        }
        NOTE("after 0, 1, 16, 256, 4096, 65536 pairs%s=%s", is_other ? " of other sizes" : "", found);
    }
}
