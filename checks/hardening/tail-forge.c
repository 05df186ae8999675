/*
about = "the 16 bytes behind a block are replaced by those behind its neighbour"
group = "overflow"
source = "canaries: isoalloc, mimalloc's secure build, hardened_malloc, jemalloc's safety checks"
why = "a canary that is not bound to its place can be copied"
forms = ["naive", "informed"]
*/
#include "../harness/misuse.h"

MISUSE {
    char *row[64], genuine[16] = "";
    for (int i = 0; i < 64; i++) row[i] = take(size);
    peek(genuine, row[31] + size, 16);
    misuse();
    if (wrong && !informed) poke(row[32] + size, 16);
    if (wrong && informed) copy(row[32] + size, genuine, 16);
    spill();
    for (int i = 32; i < 64; i++) give(row[i]);
}
