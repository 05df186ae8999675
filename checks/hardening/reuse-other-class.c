/*
about = "whether memory of freed 32-byte blocks is used for 4 KiB ones"
group = "reuse"
source = "isolation by size: PartitionAlloc, hardened_malloc"
why = "a stale pointer to an object of one kind then points into one of another kind"
ends = "values"
trials = 1
sizes = [32]
*/
#include "../harness/misuse.h"

MISUSE {
    static char *small[200000];
    for (int i = 0; i < 200000; i++) small[i] = malloc(32);
    char *low = small[100000] - (1 << 20), *high = small[100000] + (1 << 20);
    for (int i = 0; i < 200000; i++) free(small[i]);
    int inside = 0;
    for (int i = 0; i < 4000; i++) {
        char *block = malloc(4096);
        inside += block >= low && block < high;
    }
    NOTE("4 KiB blocks in memory of freed 32-byte blocks=%s", inside ? "yes" : "no");
}
