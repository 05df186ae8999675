/* Fakes an allocator that goes wrong late: after 30,000 calls, many times what one iteration makes in the test, it now and then hands out a block that is live. */
#include "own.h"

static char *last;

void *malloc(size_t size) {
    static long calls;
    if (++calls > 30000 && calls % 997 == 0 && last) return last;
    return last = own_malloc(size);
}

void free(void *block) {
    if (block == last) last = NULL;
    own_free(block);
}
