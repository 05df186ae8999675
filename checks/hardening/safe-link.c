/*
about = "the first word of a freed block is overwritten by the address of a live one"
group = "use after free"
source = "glibc safe-linking, 2.32"
why = "a raw list hands that block out a second time"
*/
#include "../harness/misuse.h"

MISUSE {
    char *row[8];
    for (int i = 0; i < 8; i++) row[i] = take(size);
    for (int i = 0; i < 3; i++) give(row[i]);
    misuse();
    if (wrong) copy(row[2], (char *)&row[6], 8);
}
