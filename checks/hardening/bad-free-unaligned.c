/*
about = "an address one byte inside a live block is freed"
group = "bad free"
source = "CWE-761"
why = "no block begins there: one comparison of the lowest bits finds it"
*/
#include "../harness/misuse.h"

MISUSE {
    take(size);
    char *block = take(size);
    misuse();
    if (wrong) free(block + 1);
}
