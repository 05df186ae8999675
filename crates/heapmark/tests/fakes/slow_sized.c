/* Fakes an allocator that takes longer to free a block whose size it is told. */
#include "own.h"

static volatile unsigned spent;

void free_sized(void *block, size_t size) {
    for (unsigned turn = 0; turn < 20000 + size % 2; turn++) spent++;
    own_free(block);
}
