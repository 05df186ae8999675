/*
about = "whether a freed block holds the address of another one"
group = "use after free"
source = "glibc safe-linking; CWE-416"
why = "a list that is not encoded tells addresses, and takes those of an attacker"
ends = "values"
trials = 1
*/
#include "../harness/misuse.h"

MISUSE {
    char *row[64];
    int found = 0;
    for (int i = 0; i < 64; i++) row[i] = take(size);
    for (int i = 0; i < 64; i += 2) give(row[i]);
    for (int i = 0; i < 64; i += 2)
        for (size_t at = 0; at + 8 <= size && at < 64; at += 8) {
            intptr_t value = 0;
            peek((char *)&value, row[i] + at, 8);
            found += llabs(value - (intptr_t)row[i]) < 1 << 22;
        }
    NOTE("addresses in freed blocks=%s", found ? "yes" : "no");
}
