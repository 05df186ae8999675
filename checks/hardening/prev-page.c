/*
about = "a byte on the page before a block is changed"
group = "overflow"
source = "CWE-124"
why = "a guard page ends the process on the first byte"
*/
#include "../harness/misuse.h"

MISUSE {
    take(size);
    char *block = take(size);
    char *before = (char *)(((uintptr_t)block & -(uintptr_t)getpagesize()) - 1);
    misuse();
    if (wrong) flip(before, 1);
    spill();
    give(block);
}
