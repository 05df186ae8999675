/*
about = "one of 20 freed blocks is freed again"
group = "double free"
source = "CWE-415; glibc tst-tcfree3"
why = "what only looks into a small cache of freed blocks does not find it"
*/
#include "../harness/misuse.h"

MISUSE {
    char *blocks[40];
    for (int i = 0; i < 40; i++) blocks[i] = take(size);
    for (int i = 0; i < 40; i += 2) give(blocks[i]);
    misuse();
    if (wrong) free(blocks[18]);
}
