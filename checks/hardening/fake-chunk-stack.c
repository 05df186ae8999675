/*
about = "the same on the stack"
group = "forged"
source = "House of Spirit; ArcHeap (USENIX Security 2020)"
why = "the next block lies over return addresses"
forms = ["informed"]
*/
#include "../harness/misuse.h"

MISUSE {
    char page[4096] __attribute__((aligned(4096)));
    char *genuine = take(size);
    for (size_t byte = 0; byte < 4096; byte++) page[byte] = genuine[byte % (size < 1024 ? size : 1024)];
    peek(page + 192, genuine - 64, 64);
    chosen(page, sizeof page);
    misuse();
    if (wrong) free(page + 256);
    exercise();
}
