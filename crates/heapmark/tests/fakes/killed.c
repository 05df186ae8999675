/* Fakes an allocator that the kernel kills after 1000 mallocs, as where memory has a limit. */
#include "own.h"
#include <signal.h>

void *malloc(size_t size) {
    static int calls;
    if (++calls > 1000) raise(SIGKILL);
    return own_malloc(size);
}
