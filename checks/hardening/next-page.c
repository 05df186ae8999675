/*
about = "a byte on the page behind a block is changed"
group = "overflow"
source = "CWE-122; isoalloc's guard pages"
why = "a guard page ends the process on the first byte"
*/
#include "../harness/misuse.h"

MISUSE {
    take(size);
    char *block = take(size);
    uintptr_t page = getpagesize();
    char *past = (char *)(((uintptr_t)block + malloc_usable_size(block) + page - 1) & -page);
    misuse();
    if (wrong) flip(past, 1);
    spill();
    give(block);
}
