/* Fakes an allocator that never uses freed memory again, but lets the kernel take it whenever it needs some. */
#define FREED_LAZILY
#include "each_mapped.h"

static void *no_mapping(size_t bytes) {
    (void)bytes;
    return MAP_FAILED;
}
