/* Fakes an allocator that has memory, but none with an alignment. */
#include "own.h"
#include <errno.h>

int posix_memalign(void **block, size_t alignment, size_t size) {
    (void)block, (void)alignment, (void)size;
    return ENOMEM;
}
