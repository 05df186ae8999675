/*
about = "blocks that grow again and again, and a steady churn, need no more memory each time"
group = "memory"
standing = "robust"
source = "vectors and buffers that double; servers that run for weeks"
why = "a heap that grows with its work ends in the killer of processes"
full = true
*/
#include "harness/check.h"
#include "harness/resident.h"
#include <time.h>

static void grow(int rounds) {
    while (rounds--) {
        size_t size = 256 << 10;
        char *block = memset(malloc(size), 1, size);
        for (int step = 0; step < 12; step++, size = size * 3 / 2) memset(block = realloc(block, size * 3 / 2), 1, size * 3 / 2);
        free(block);
    }
}

static char *live[4000];
static void churn(int seconds, uint64_t random) {
    for (time_t end = time(NULL) + seconds; time(NULL) < end;)
        for (int times = 0; times < 1000; times++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            size_t size = 16 + (random >> 33) % ((random >> 20) % 100 ? 2000 : 100000);
            char **place = &live[(random >> 24) % 4000];
            free(*place), *place = memset(malloc(size), 1, size);
        }
}

CHECK {
    grow(5), churn(1, 1);
    size_t before = resident(), most = 2 * before + (16 << 20);
    grow(45);
    if (resident() < most) churn(4, 2);
    size_t after = resident();
    EXPECT(after < most, "%zu MiB after a tenth of the work, %zu MiB after all", before >> 20, after >> 20);
    NOTE("resident=%zu MiB", after >> 20);
}

#ifdef PLANTED
void *realloc(void *block, size_t size) {
    char *moved = __libc_malloc(size);
    if (block) memcpy(moved, block, malloc_usable_size(block) < size ? malloc_usable_size(block) : size);
    if (size > 4 << 20) free(block);
    return moved;
}
#endif
