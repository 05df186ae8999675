/*
about = "after how many blocks of other sizes the addresses of a freed large one are used again"
group = "reuse"
source = "quarantine of address space: hardened_malloc, scudo"
why = "a stale pointer to a large block is safe until then"
ends = "values"
trials = 1
sizes = [65536, 1048576, 16777216, 67108864]
*/
#include "../harness/misuse.h"

MISUSE {
    char *block = malloc(size), *end = block + size;
    int most = 10000, turn = 0;
    for (free(block); turn < most; turn++) {
        size_t bytes = 65536 + (size_t)turn * 40503 % (2 * size);
        char *new = malloc(bytes);
        if (new < end && block < new + bytes) break;
        free(new);
    }
    NOTE("pairs of malloc and free until it is used=%s%d", turn == most ? ">= " : "", turn);
}
