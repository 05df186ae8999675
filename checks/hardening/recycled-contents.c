/*
about = "what malloc returns of the contents of freed blocks"
group = "use after free"
source = "CWE-226, CWE-908; mimalloc's and Android's fill on free"
why = "old contents are what a program leaks that forgets to initialise"
ends = "values"
trials = 1
*/
#include "../harness/misuse.h"

MISUSE {
    static char *row[512];
    size_t bytes = size < 4096 ? size : 4096, blocks = size > 65536 ? 32 : 512, old = 0, zero = 0;
    for (size_t i = 0; i < blocks; i++) memset(row[i] = malloc(size), 0x37, bytes);
    for (size_t i = 0; i < blocks; i++) free(row[i]);
    for (size_t i = 0; i < blocks; i++) row[i] = malloc(size);
    for (size_t i = 0; i < blocks; i++)
        for (size_t byte = 0; byte < bytes; byte++) old += row[i][byte] == 0x37, zero += row[i][byte] == 0;
    NOTE("old bytes=%zu %%", old * 100 / (blocks * bytes));
    NOTE("zero bytes=%zu %%", zero * 100 / (blocks * bytes));
}
