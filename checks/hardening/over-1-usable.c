/*
about = "one byte behind the usable size is changed"
group = "overflow"
source = "CWE-122"
why = "behind all slack: the neighbour, its header, or a guard"
*/
#include "../harness/misuse.h"

MISUSE {
    char *row[64];
    for (int i = 0; i < 64; i++) row[i] = take(size);
    char *past = row[32] + malloc_usable_size(row[32]);
    misuse();
    if (wrong) flip(past, 1);
    spill();
    for (int i = 32; i < 64; i++) give(row[i]);
}
