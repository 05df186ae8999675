/*
about = "an array of operator new[] is deleted by operator delete"
group = "mismatch"
source = "CWE-762"
why = "a library that keeps the kind of a block can tell"
*/
#include "../harness/misuse.h"

MISUSE {
    char *(*make)(size_t) = operator_of("_Znam");
    void (*drop)(void *) = operator_of("_ZdlPv"), (*drop_array)(void *) = operator_of("_ZdaPv");
    char *block = make(size);
    misuse();
    if (wrong) drop(block);
    if (!wrong) drop_array(block);
}
