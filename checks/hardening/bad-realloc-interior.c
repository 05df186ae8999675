/*
about = "realloc of an address inside a live block"
group = "bad realloc"
source = "CWE-761"
why = "it frees the old block and copies from it"
sizes = [32, 4000, 262144, 1048576]
*/
#include "../harness/misuse.h"

MISUSE {
    char *block = take(size), *new = NULL;
    take(size);
    misuse();
    if (wrong) new = realloc(block + 16, size * 2);
    if (new) own(new, size * 2);
}
