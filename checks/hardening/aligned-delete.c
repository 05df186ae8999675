/*
about = "a plain object is deleted as one that is aligned to 4 KiB"
group = "mismatch"
source = "CWE-762"
why = "an alignment that is trusted leads to another header"
*/
#include "../harness/misuse.h"

MISUSE {
    char *(*make)(size_t) = operator_of("_Znwm");
    void (*drop)(void *) = operator_of("_ZdlPv");
    void (*drop_aligned)(void *, size_t) = operator_of("_ZdlPvSt11align_val_t");
    char *block = make(size);
    misuse();
    if (wrong) drop_aligned(block, 4096);
    if (!wrong) drop(block);
}
