/*
about = "a static array is freed"
group = "bad free"
source = "CWE-590; House of Spirit"
why = "as on the stack, but near the program's data"
sizes = [24]
rate = true
*/
#include "../harness/misuse.h"

MISUSE {
    static char array[512];
    poke(array, sizeof array);
    take(size);
    misuse();
    if (wrong) free(array + 256);
}
