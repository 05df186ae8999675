/*
about = "an aligned block is freed twice"
group = "double free"
source = "CWE-415; tcmalloc memory_errors_test"
why = "aligned blocks often have a path of their own"
sizes = [256, 4096, 262144, 1048576]
*/
#include "../harness/misuse.h"

MISUSE {
    char *block = own(memalign(256, size), size);
    give(block);
    misuse();
    if (wrong) free(block);
}
