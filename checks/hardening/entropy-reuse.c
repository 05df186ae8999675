/*
about = "after how many mallocs one of 1000 blocks returns that was freed"
group = "reuse"
source = "DieHarder; SlimGuard; Guarder"
why = "the bits that an attacker must guess to get a freed block"
ends = "values"
trials = 200
full = true
gather = "entropy"
sizes = [24]
*/
#include "../harness/misuse.h"

MISUSE {
    static char *row[1000];
    int mallocs = 0, most = 65536;
    for (int i = 0; i < 1000; i++) row[i] = malloc(size);
    for (free(row[500]); mallocs < most && malloc(size) != row[500]; mallocs++) {}
    if (mallocs < most) SAMPLE("%d", mallocs);
    else SAMPLE("not reused within %d allocations", most);
}
