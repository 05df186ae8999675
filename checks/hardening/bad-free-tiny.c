/*
about = "the address 1 is freed"
group = "bad free"
source = "CWE-590"
why = "a flag that was taken for a pointer"
sizes = [24]
*/
#include "../harness/misuse.h"

MISUSE {
    take(size);
    misuse();
    if (wrong) free((void *)1);
}
