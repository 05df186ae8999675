/* Fakes an allocator that crashes in a call that no workload makes. */
#include "own.h"

void *aligned_alloc(size_t alignment, size_t size) {
    __builtin_trap();
    return own_malloc(alignment + size);
}
