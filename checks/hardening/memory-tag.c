/*
about = "a neighbour is written through a pointer of another block, under memory tagging"
group = "overflow"
source = "Arm memory tagging; scudo, glibc mem.tagging"
why = "the hardware compares a tag of the pointer with one of the memory"
sizes = [24]
*/
#include "../harness/misuse.h"
#include <sys/auxv.h>

MISUSE {
    char *block = take(size), *next = take(size);
    if (!(getauxval(AT_HWCAP2) & (1 << 18))) UNSUPPORTED("this processor has no memory tagging");
    misuse();
    if (wrong) flip(block + malloc_usable_size(block), 1);
    spill();
    (void)next;
}
