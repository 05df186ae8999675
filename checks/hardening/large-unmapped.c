/*
about = "a large block is read after it was freed"
group = "use after free"
source = "CWE-416"
why = "memory that was given back ends the process, memory that is kept shows what was there"
sizes = [1048576, 67108864]
*/
#include "../harness/misuse.h"

MISUSE {
    char *block = take(size);
    give(block);
    misuse();
    if (wrong) flip(block + size / 2, 1);
}
