/*
about = "memory of the stack is freed"
group = "bad free"
source = "CWE-590; House of Spirit"
why = "an allocator that trusts a header takes the bytes before it for one"
sizes = [24]
rate = true
*/
#include "../harness/misuse.h"

MISUSE {
    char array[512], *block = array + 256;
    poke(array, sizeof array);
    take(size);
    misuse();
    if (wrong) free(block);
}
