/*
about = "realloc of a freed block"
group = "bad realloc"
source = "CWE-416; mimalloc-bench security"
why = "it frees the old block and copies from it"
*/
#include "../harness/misuse.h"

MISUSE {
    char *block = take(size), *new = NULL;
    take(size);
    give(block);
    misuse();
    if (wrong) new = realloc(block, size * 2);
    if (new) own(new, size * 2);
}
