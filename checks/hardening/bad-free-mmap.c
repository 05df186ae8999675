/*
about = "memory that the program has mapped itself is freed"
group = "bad free"
source = "CWE-590"
why = "it looks like the memory of a large block"
sizes = [24]
rate = true
*/
#include "../harness/misuse.h"
#include <sys/mman.h>

MISUSE {
    char *map = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    poke(map, 1 << 16);
    take(size);
    misuse();
    if (wrong) free(map + 4096);
}
