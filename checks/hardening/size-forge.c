/*
about = "the 8 bytes before a block are replaced by those before one of four times the size, and it is freed"
group = "forged"
source = "CWE-122; overlapping chunks"
why = "a size in a header that is not bound to its place decides what the next block covers"
forms = ["informed"]
*/
#include "../harness/misuse.h"

MISUSE {
    char *row[8], *larger = take(size * 4), genuine[16] = "";
    for (int i = 0; i < 8; i++) row[i] = take(size);
    peek(genuine, larger - 8, 8);
    misuse();
    if (wrong) copy(row[4] - 8, genuine, 8);
    spill();
    give(row[4]);
}
