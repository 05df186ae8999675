/* An allocator that can be jumped out of: for this size it never returns. */
#include <signal.h>
#include "all_but_malloc.h"

void *malloc(size_t size) {
    if (size == 9401)
        raise(SIGUSR1);
    return __libc_malloc(size);
}
