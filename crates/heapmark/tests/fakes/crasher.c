/* Fakes an allocator that crashes after 1000 mallocs. */
#include "own.h"

void *malloc(size_t size) {
    static int calls;
    if (++calls > 1000) *(volatile int *)8 = 1;
    return own_malloc(size);
}
