/* Fakes an allocator that writes into a block while its owner uses it. */
#include "own.h"

static char *last;

void *malloc(size_t size) {
    if (last) *last ^= 0x55;
    return last = own_malloc(size);
}

void free(void *block) {
    if (block == last) last = NULL;
    own_free(block);
}
