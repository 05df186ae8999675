/* Fakes a library that ends the process with success in the middle of its work. */
#include "own.h"
#include <unistd.h>

void *malloc(size_t size) {
    static int calls;
    if (++calls == 1000) _exit(0);
    return own_malloc(size);
}
