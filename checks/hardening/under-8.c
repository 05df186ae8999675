/*
about = "8 bytes before a block are changed"
group = "overflow"
source = "CWE-124"
why = "an end by this shows a header there"
forms = ["naive", "informed"]
*/
#include "../harness/misuse.h"

MISUSE {
    char *row[64];
    for (int i = 0; i < 64; i++) row[i] = take(size);
    char *past = row[32] + (-8);
    misuse();
    if (wrong && !informed) flip(past, 8);
    if (wrong && informed) copy(past, row[31] + (-8), 8);
    spill();
    for (int i = 32; i < 64; i++) give(row[i]);
}
