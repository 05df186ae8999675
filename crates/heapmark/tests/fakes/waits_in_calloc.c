/* Fakes an allocator that waits for ever in calloc of two. */
#include "own.h"
#include <unistd.h>

void *malloc(size_t size) { return own_malloc(size); }

void *calloc(size_t count, size_t size) {
    if (count == 2) pause();
    return own_calloc(count, size);
}
