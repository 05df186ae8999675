/*
about = "a block of malloc is deleted by operator delete"
group = "mismatch"
source = "CWE-762"
why = "a library that keeps the kind of a block can tell"
*/
#include "../harness/misuse.h"

MISUSE {
    void (*drop)(void *) = operator_of("_ZdlPv");
    char *block = malloc(size);
    misuse();
    if (wrong) drop(block);
    if (!wrong) free(block);
}
