/*
about = "the first 64 bytes of a freed block are written"
group = "use after free"
source = "CWE-416"
why = "a list inside freed blocks is broken, or led to memory of the attacker's choice"
forms = ["naive", "informed"]
*/
#include "../harness/misuse.h"
#include <sys/mman.h>

MISUSE {
    char *row[64], *map = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 64; i++) row[i] = take(size);
    for (int i = 0; i < 64; i += 2) give(row[i]);
    poke(map, 1 << 16);
    victim(map, 1 << 16);
    misuse();
    size_t bytes = size < 64 ? size : 64;
    char *forged[8] = {map + 4096, map + 4096, map + 4096, map + 4096, map + 4096, map + 4096, map + 4096, map + 4096};
    if (wrong && !informed) poke(row[62], bytes);
    if (wrong && informed) copy(row[62], (char *)forged, bytes);
}
