/*
about = "which of the 17 bytes behind the size that was asked for are noticed at free"
group = "overflow"
source = "canaries: isoalloc, mimalloc's secure build, hardened_malloc"
why = "slack, where the canary begins, how wide it is"
ends = "values"
trials = 1
sizes = [20, 24, 1000, 4000]
*/
#include "../harness/misuse.h"

MISUSE {
    char *row[12], found[120];
    int used = 0;
    for (int i = 0; i < 12; i++) row[i] = malloc(size);
    for (int distance = 0; distance <= 16; distance++) {
        int stopped = 0;
        for (int i = 2; i < 10; i++) {
            const char *end = apart();
            if (!end) row[i][size + distance] ^= 1 << i % 8, free(row[i]), leave();
            else stopped += strcmp(end, "stopped") == 0;
        }
        used += snprintf(found + used, sizeof found - used, "%d ", stopped);
    }
    NOTE("ended at free, of 8, by distance 0 to 16=%s", found);
}
