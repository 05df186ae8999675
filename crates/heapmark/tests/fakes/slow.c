/* Fakes no fault: an allocator that is only some 20 times slower than others. */
#include "own.h"

void *malloc(size_t size) {
    for (volatile int i = 0; i < 1000; i++) {
    }
    return own_malloc(size);
}
