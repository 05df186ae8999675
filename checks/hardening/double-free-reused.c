/*
about = "a block is freed by its old owner when it belongs to a new one"
group = "double free"
source = "CWE-415, CWE-416"
why = "no allocator can tell the two owners apart, unless it delays reuse or tags pointers"
*/
#include "../harness/misuse.h"

MISUSE {
    char *block = take(size), *new = NULL;
    give(block);
    for (int i = 0; i < 1000 && new != block; i++) new = take(size);
    if (new != block) disown(block);
    misuse();
    if (wrong) free(block);
}
