/*
about = "a block is freed twice with another free between"
group = "double free"
source = "CWE-415; glibc tst-tcfree2"
why = "a comparison with the last freed block only does not find it"
*/
#include "../harness/misuse.h"

MISUSE {
    char *block = take(size), *other = take(size);
    give(block);
    give(other);
    misuse();
    if (wrong) free(block);
}
