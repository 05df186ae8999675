/*
about = "whether parent and child place their next 32 blocks alike"
group = "fork"
source = "hardened_malloc: no new secret after fork; OpenBSD"
why = "what one process shows is true of the other"
ends = "values"
trials = 1
*/
#include "../harness/misuse.h"
#include <sys/mman.h>

MISUSE {
    char **seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int same = 0;
    const char *how = apart();
    if (!how) {
        for (int i = 0; i < 32; i++) seen[i] = malloc(size);
        leave();
    }
    if (strcmp(how, "fine") != 0) UNSUPPORTED("the child: %s", how);
    for (int i = 0; i < 32; i++) same += malloc(size) == seen[i];
    NOTE("equal addresses=%d of 32", same);
}
