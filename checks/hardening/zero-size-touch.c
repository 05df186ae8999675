/*
about = "a block of no bytes is read and written"
group = "overflow"
source = "CWE-131; hardened_malloc, whose blocks of no bytes have no access"
why = "a size that was computed as 0"
sizes = [8]
*/
#include "../harness/misuse.h"

MISUSE {
    take(32);
    char *block = malloc(0), *next = take(1);
    if (!block) UNSUPPORTED("malloc(0) returns NULL");
    misuse();
    if (wrong) flip(block, 1);
    spill();
    (void)next;
}
