/* Fakes an allocator that ends the process if it is asked for more than there can be. */
#include "own.h"
#include <stdint.h>
#include <stdlib.h>

static size_t possible(size_t size) {
    if (size > PTRDIFF_MAX) abort();
    return size;
}

void *malloc(size_t size) { return own_malloc(possible(size)); }

void *calloc(size_t count, size_t size) {
    if (size && count > SIZE_MAX / size) abort();
    return own_calloc(count, size);
}

void *realloc(void *block, size_t size) { return own_realloc(block, possible(size)); }
