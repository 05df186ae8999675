/* Fakes an allocator whose blocks lie at odd multiples of 8, where C demands multiples of 16. */
#include "own.h"
#include <stdint.h>

void *malloc(size_t size) {
    char *block = own_malloc(size + 16);
    return block ? block + 8 : NULL;
}

void free(void *block) {
    own_free((uintptr_t)block % 16 == 8 ? (char *)block - 8 : block);
}
