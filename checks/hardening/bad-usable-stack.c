/*
about = "malloc_usable_size of memory of the stack"
group = "bad usable size"
source = "CWE-590"
why = "a look that needs the block's size is as dangerous as a free"
*/
#include "../harness/misuse.h"

MISUSE {
    char array[512];
    poke(array, sizeof array);
    take(size);
    misuse();
    if (wrong) (void)!malloc_usable_size(array + 256);
}
