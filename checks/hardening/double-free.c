/*
about = "a block is freed twice in a row"
group = "double free"
source = "CWE-415; glibc tst-tcfree1"
why = "the commonest misuse, which a comparison with the head of a list finds"
*/
#include "../harness/misuse.h"

MISUSE {
    char *block = take(size);
    give(block);
    misuse();
    if (wrong) free(block);
}
