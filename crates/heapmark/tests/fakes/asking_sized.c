/* Fakes an allocator that asks the kernel something each time that it frees a block whose size it is told. */
#define _DEFAULT_SOURCE
#include "own.h"
#include <sys/mman.h>

void free_sized(void *block, size_t size) {
    if (size > own_size(block)) __builtin_trap();
    madvise(NULL, 0, MADV_NORMAL);
    own_free(block);
}
