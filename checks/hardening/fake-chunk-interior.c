/*
about = "the same inside a live block"
group = "forged"
source = "House of Spirit; ArcHeap (USENIX Security 2020)"
why = "the live block and the next one overlap"
forms = ["informed"]
*/
#include "../harness/misuse.h"

MISUSE {
    char *large = malloc(20000), *page = (char *)(((uintptr_t)large + 4095) & ~(uintptr_t)4095);
    char *genuine = take(size);
    for (size_t byte = 0; byte < 4096; byte++) page[byte] = genuine[byte % (size < 1024 ? size : 1024)];
    peek(page + 192, genuine - 64, 64);
    hold(large, 20000);
    misuse();
    if (wrong) free(page + 256);
}
