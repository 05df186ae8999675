/*
about = "realloc of memory of the stack"
group = "bad realloc"
source = "CWE-590"
why = "it frees the old block and copies from it"
*/
#include "../harness/misuse.h"

MISUSE {
    char array[512], *new = NULL;
    poke(array, sizeof array);
    take(size);
    misuse();
    if (wrong) new = realloc(array + 256, size * 2);
    if (new) own(new, size * 2);
}
