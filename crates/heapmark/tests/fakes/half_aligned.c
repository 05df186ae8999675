/* Fakes an allocator that gives aligned blocks half of the alignment that was asked for, of 64 bytes and more. */
#include "own.h"
#include <stdint.h>

/* Blocks of which malloc gave an earlier address: one that is freed is lost. */
int posix_memalign(void **block, size_t alignment, size_t size) {
    char *start = own_malloc(size + 2 * alignment);
    if (!start) return 12;
    uintptr_t aligned = ((uintptr_t)start + alignment - 1) / alignment * alignment;
    *block = (void *)(alignment < 64 ? aligned : aligned + alignment / 2);
    return 0;
}

void free(void *block) { (void)block; }
