/*
about = "a block that the attacker built in memory of its own is freed: its surroundings are copied from a genuine one"
group = "forged"
source = "House of Spirit; ArcHeap (USENIX Security 2020)"
why = "a header that is only compared with what headers look like is no proof"
forms = ["informed"]
*/
#include "../harness/misuse.h"
#include <sys/mman.h>

MISUSE {
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *genuine = take(size);
    for (size_t byte = 0; byte < 4096; byte++) page[byte] = genuine[byte % (size < 1024 ? size : 1024)];
    peek(page + 192, genuine - 64, 64);
    chosen(page, 8192);
    misuse();
    if (wrong) free(page + 256);
}
