/*
about = "an address in memory without any rights is freed"
group = "bad free"
source = "CWE-590; hardened_malloc invalid_free_protected"
why = "an allocator that reads before it checks ends by accident"
sizes = [24]
*/
#include "../harness/misuse.h"
#include <sys/mman.h>

MISUSE {
    char *map = mmap(NULL, 1 << 22, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    take(size);
    misuse();
    if (wrong) free(map + (1 << 21));
}
