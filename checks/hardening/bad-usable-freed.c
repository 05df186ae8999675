/*
about = "malloc_usable_size of a freed block"
group = "bad usable size"
source = "CWE-416; mimalloc-bench security"
why = "a look that needs the block's size is as dangerous as a free"
*/
#include "../harness/misuse.h"

MISUSE {
    char *block = take(size);
    take(size);
    give(block);
    misuse();
    if (wrong) (void)!malloc_usable_size(block);
}
