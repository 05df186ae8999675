/*
about = "malloc_usable_size of an address inside a live block"
group = "bad usable size"
source = "CWE-761"
why = "a look that needs the block's size is as dangerous as a free"
sizes = [32, 4000, 262144, 1048576]
*/
#include "../harness/misuse.h"

MISUSE {
    char *block = take(size);
    take(size);
    misuse();
    if (wrong) (void)!malloc_usable_size(block + 16);
}
