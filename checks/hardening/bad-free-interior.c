/*
about = "an address inside a live block is freed"
group = "bad free"
source = "CWE-761"
why = "a program that walks a string and frees the end of its walk"
sizes = [32, 4000, 262144, 1048576]
*/
#include "../harness/misuse.h"

MISUSE {
    char *block = take(size), *next = take(size);
    misuse();
    if (wrong) free(block + size / 2 / 16 * 16 + (size < 32 ? 16 : 0));
    (void)next;
}
