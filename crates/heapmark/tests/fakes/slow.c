/* Fakes no fault: an allocator that is only some hundred times slower than others: slower than what
   other programs of the machine make of a process of milliseconds. */
#include "own.h"

#ifndef TURNS
#define TURNS 5000
#endif

void *malloc(size_t size) {
    for (volatile int i = 0; i < TURNS; i++) {
    }
    return own_malloc(size);
}
