/*
about = "the address of a block plus 1 GiB is freed"
group = "bad free"
source = "CWE-590"
why = "an index that was not checked"
*/
#include "../harness/misuse.h"

MISUSE {
    char *block = take(size);
    misuse();
    if (wrong) free(block + ((size_t)1 << 30));
}
