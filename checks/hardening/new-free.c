/*
about = "an object of operator new is freed by free"
group = "mismatch"
source = "CWE-762; tcmalloc's debugging build"
why = "the same function in most libraries, and an error in a program that has its own operators"
*/
#include "../harness/misuse.h"

MISUSE {
    char *(*make)(size_t) = operator_of("_Znwm");
    void (*drop)(void *) = operator_of("_ZdlPv");
    char *block = make(size);
    misuse();
    if (wrong) free(block);
    if (!wrong) drop(block);
}
