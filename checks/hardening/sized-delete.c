/*
about = "an object is deleted with twice its size"
group = "mismatch"
source = "CWE-131; mimalloc, snmalloc and hardened_malloc can check it"
why = "a size that is trusted puts the block into the list of another class"
*/
#include "../harness/misuse.h"

MISUSE {
    char *(*make)(size_t) = operator_of("_Znwm");
    void (*drop)(void *, size_t) = operator_of("_ZdlPvm");
    char *block = make(size);
    misuse();
    if (wrong) drop(block, size * 2);
    if (!wrong) drop(block, size);
}
