/*
about = "a genuine address is freed with a bit set that no address has"
group = "bad free"
source = "tcmalloc memory_errors_test; pointers with tags"
why = "a tag that was not removed; a table that is indexed without a check"
ends = "values"
trials = 1
sizes = [24, 262144]
*/
#include "../harness/misuse.h"

MISUSE {
    static const int bits[] = {0, 3, 47, 48, 55, 56, 63};
    char *block = take(size);
    for (int which = 0; which < 7; which++) {
        const char *end = apart();
        if (!end) free((void *)((uintptr_t)block ^ (uintptr_t)wrong << bits[which])), leave();
        else NOTE("bit %d=%s", bits[which], end);
    }
}
