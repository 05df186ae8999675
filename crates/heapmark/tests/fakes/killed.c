/* Fakes an allocator that is killed after 1000 mallocs, and not for lack of memory. */
#include "own.h"
#include <signal.h>

void *malloc(size_t size) {
    static int calls;
    if (++calls > 1000) raise(SIGKILL);
    return own_malloc(size);
}
