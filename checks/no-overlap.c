/*
about = "live blocks do not overlap"
group = "contents"
standing = "std"
source = "ISO C17, 7.22.3"
why = "two owners of one byte are the worst that an allocator can do"
*/
#include "harness/check.h"

CHECK {
    static struct { unsigned char *at; size_t size; } live[20000];
    uint64_t random = 1;
    for (int turn = 0; turn < 120000; turn++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        int which = turn < 20000 ? turn : (int)((random >> 33) % 20000);
        for (size_t byte = 0; byte < live[which].size; byte++)
            if (live[which].at[byte] != (unsigned char)which) {
                EXPECT(false, "byte %zu of a live block of %zu bytes was changed", byte, live[which].size);
                break;
            }
        free(live[which].at);
        live[which].size = (random >> 20) % 100 ? (random >> 40) % 500 + 1 : (random >> 40) % 40000 + 1;
        live[which].at = malloc(live[which].size);
        memset(live[which].at, (unsigned char)which, live[which].size);
    }
}

#ifdef PLANTED
void *malloc(size_t size) {
    static char *last;
    static int turn;
    if (++turn % 1000 == 0 && size < 8000 && last) return last;
    last = __libc_malloc(size < 8000 ? 8000 : size);
    return last;
}
void free(void *block) { (void)block; }
#endif
