/* Fakes an allocator that now and then hands out a block that is live. */
#include "own.h"

static char *last;

void *malloc(size_t size) {
    static int calls;
    if (++calls % 100 == 0 && last) return last;
    return last = own_malloc(size);
}

void free(void *block) {
    if (block == last) last = NULL;
    own_free(block);
}
