/* Fakes an allocator that runs out of memory after 1000 calls. */
#include "own.h"

void *malloc(size_t size) {
    static int calls;
    return ++calls > 1000 ? NULL : own_malloc(size);
}
