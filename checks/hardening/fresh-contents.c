/*
about = "whether first blocks are zero"
group = "placement"
source = "CWE-908; information leaks"
why = "a program that forgets to initialise works by accident, or leaks"
ends = "values"
trials = 1
*/
#include "../harness/misuse.h"

MISUSE {
    size_t zero = 0, bytes = size < 4096 ? size : 4096, blocks = 16;
    for (size_t i = 0; i < blocks; i++) {
        char *block = malloc(size);
        for (size_t byte = 0; byte < bytes; byte++) zero += block[byte] == 0;
    }
    NOTE("zero bytes=%zu %%", zero * 100 / (blocks * bytes));
}
