/*
about = "which of the 17 bytes behind the size that was asked for are noticed at free"
group = "overflow"
source = "canaries: isoalloc, mimalloc's secure build, hardened_malloc"
why = "slack, where the canary begins, how wide it is"
ends = "values"
trials = 1
seconds = 45
sizes = [20, 24, 1000, 4000]
*/
#include "../harness/misuse.h"

MISUSE {
    char *row[12], found[120];
    int used = 0, most = 0, trials = wrong ? 200 : 8;
    for (int i = 0; i < 12; i++) row[i] = malloc(size);
    for (int distance = 0; distance <= 16; distance++) {
        int stopped = 0;
        for (int trial = 0; trial < trials; trial++) {
            const char *end = apart();
            char *block = row[2 + trial / 8 % 8];
            if (!end) block[size + distance] ^= wrong << trial % 8, free(block), leave();
            else stopped += strcmp(end, "stopped") == 0;
        }
        most = stopped > most ? stopped : most;
        used += snprintf(found + used, sizeof found - used, "%d ", stopped);
    }
    NOTE("ended at free, of 200, by distance 0 to 16=%s", found);
    RATE("ended at free where most do", most, trials);
}
