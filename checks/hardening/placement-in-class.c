/*
about = "how many orders of 12 blocks there are"
group = "placement"
source = "DieHarder; hardened_malloc's random slots"
why = "one order: an attacker knows which block lies behind which"
ends = "values"
trials = 200
gather = "distinct"
sizes = [24]
*/
#include "../harness/misuse.h"

MISUSE {
    char *row[13], text[400];
    int used = 0;
    for (int i = 0; i < 13; i++) row[i] = malloc(size);
    for (int i = 1; i < 13; i++) used += snprintf(text + used, sizeof text - used, "%td ", row[i] - row[i - 1]);
    SAMPLE("%s", text);
}
