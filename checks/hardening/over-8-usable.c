/*
about = "8 bytes behind the usable size are changed"
group = "overflow"
source = "CWE-122"
why = "a word of the neighbour: its header, its first pointer, or a guard"
forms = ["naive", "informed"]
*/
#include "../harness/misuse.h"

MISUSE {
    char *row[64];
    for (int i = 0; i < 64; i++) row[i] = take(size);
    char *past = row[32] + malloc_usable_size(row[32]);
    misuse();
    if (wrong && !informed) flip(past, 8);
    if (wrong && informed) copy(past, row[31] + malloc_usable_size(row[32]), 8);
    spill();
    for (int i = 32; i < 64; i++) give(row[i]);
}
