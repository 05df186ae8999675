/* Fakes an allocator that serves well, and whose free changes errno. */
#include "own.h"
#include <errno.h>

void *malloc(size_t size) { return own_malloc(size); }

void free(void *block) {
    own_free(block);
    errno = EINVAL;
}
