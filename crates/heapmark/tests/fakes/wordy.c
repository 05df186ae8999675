/* Fakes no fault: an allocator that takes a few hundred instructions more than it must. */
#include "own.h"

void *malloc(size_t size) {
    for (volatile int i = 0; i < 100; i++) {
    }
    return own_malloc(size);
}
