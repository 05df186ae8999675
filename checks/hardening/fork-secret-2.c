/*
about = "whether the bytes around equal blocks of parent and child are equal"
group = "fork"
source = "canaries and keys after fork"
why = "one leak then serves both"
ends = "values"
trials = 1
sizes = [24]
*/
#include "../harness/misuse.h"
#include <sys/mman.h>

MISUSE {
    char (*seen)[32] = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), own[32];
    int before = 0, behind = 0;
    const char *how = apart();
    bool is_child = !how;
    if (how && strcmp(how, "fine") != 0) UNSUPPORTED("the child: %s", how);
    for (int i = 0; i < 32; i++) {
        char *block = memset(malloc(size), 0x37, size);
        char *to = memset(is_child ? seen[i] : own, 0, 32);
        peek(to, block - 16, 16);
        peek(to + 16, block + size, 16);
        if (is_child) continue;
        before += memcmp(seen[i], own, 16) == 0;
        behind += memcmp(seen[i] + 16, own + 16, 16) == 0;
    }
    if (is_child) leave();
    NOTE("equal bytes before the block=%d of 32", before);
    NOTE("equal bytes behind the block=%d of 32", behind);
}
