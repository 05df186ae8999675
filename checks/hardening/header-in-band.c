/*
about = "how far apart 48-byte blocks lie"
group = "placement"
source = "every design decides it"
why = "memory between blocks holds what the allocator trusts"
ends = "values"
trials = 1
sizes = [48]
*/
#include "../harness/misuse.h"

MISUSE {
    char *row[1000];
    intptr_t stride = INTPTR_MAX;
    for (int i = 0; i < 1000; i++) row[i] = take(size);
    for (int i = 1; i < 1000; i++)
        if (llabs(row[i] - row[i - 1]) < stride) stride = llabs(row[i] - row[i - 1]);
    NOTE("least distance of two blocks=%td", stride);
    NOTE("bytes between blocks=%td", stride - (intptr_t)malloc_usable_size(row[500]));
}
