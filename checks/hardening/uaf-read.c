/*
about = "what can be read in a freed block"
group = "use after free"
source = "CWE-416; CWE-226"
why = "old contents are secrets, addresses are the way around randomisation"
ends = "values"
trials = 1
*/
#include "../harness/misuse.h"

MISUSE {
    char old[1024];
    char *row[64];
    size_t kept = 0, zero = 0, bytes = size < 1024 ? size : 1024;
    for (int i = 0; i < 64; i++) row[i] = take(size);
    copy(old, row[30], bytes);
    for (int i = 0; i < 64; i += 2) give(row[i]);
    misuse();
    volatile char *freed = row[wrong ? 30 : 31];
    target((char *)freed, size);
    for (size_t byte = 0; byte < bytes; byte++) zero += freed[byte] == 0, kept += freed[byte] == old[byte];
    target(NULL, 0);
    NOTE("old bytes=%zu %%", kept * 100 / bytes);
    NOTE("zero bytes=%zu %%", zero * 100 / bytes);
}
