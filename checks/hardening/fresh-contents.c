/*
about = "whether first blocks are zero, and the first ones after a fork"
group = "placement"
source = "CWE-908; information leaks"
why = "a program that forgets to initialise works by accident, or leaks"
ends = "values"
trials = 1
*/
#include "../harness/misuse.h"
#include <sys/mman.h>

static size_t zeros(void) {
    size_t zero = 0, bytes = size < 4096 ? size : 4096, blocks = 16;
    for (size_t i = 0; i < blocks; i++) {
        char *block = malloc(size);
        for (size_t byte = 0; byte < bytes; byte++) zero += block[byte] == 0;
    }
    return zero * 100 / (blocks * bytes);
}

MISUSE {
    size_t *after = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    NOTE("zero bytes=%zu %%", zeros());
    const char *how = apart();
    if (!how) *after = zeros(), leave();
    if (strcmp(how, "fine") == 0) NOTE("zero bytes after a fork=%zu %%", *after);
    else NOTE("zero bytes after a fork=%s", how);
}
