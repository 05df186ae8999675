/* Fakes an allocator that waits for ever, as on a lock that is never released. */
#include "own.h"
#include <unistd.h>

void *malloc(size_t size) {
    static int calls;
    if (++calls > 1000)
        for (;;) pause();
    return own_malloc(size);
}
