/* Fakes a library that lacks a function, and calls it in the middle of its work. */
#include "own.h"

void heapmark_nowhere(void);

void *malloc(size_t size) {
    static int calls;
    if (++calls == 1000) heapmark_nowhere();
    return own_malloc(size);
}
