/* Fakes an allocator that writes into a block while its owner uses it. */
#include "forward.h"

static char *last;

void *malloc(size_t size) {
    if (last) *last ^= 0x55;
    return last = __libc_malloc(size);
}

void free(void *block) {
    if (block == last) last = NULL;
    __libc_free(block);
}
