/*
about = "one byte behind the size that was asked for is changed"
group = "overflow"
source = "CWE-122, CWE-193"
why = "the off-by-one of a string; rounding up to a size class hides it"
*/
#include "../harness/misuse.h"

MISUSE {
    char *row[64];
    for (int i = 0; i < 64; i++) row[i] = take(size);
    char *past = row[32] + size;
    misuse();
    if (wrong) flip(past, 1);
    spill();
    for (int i = 32; i < 64; i++) give(row[i]);
}
