/*
about = "a function is freed"
group = "bad free"
source = "CWE-590; mimalloc-bench security"
why = "memory that can be read and not written"
sizes = [24]
*/
#include "../harness/misuse.h"

MISUSE {
    take(size);
    misuse();
    if (wrong) free((void *)(((uintptr_t)&strlen + 64) & ~(uintptr_t)63));
}
