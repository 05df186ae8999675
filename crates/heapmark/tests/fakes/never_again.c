/* Fakes an allocator that never hands out a freed block again. */
#include "own.h"

void free(void *block) {
    if (!own_has(block)) own_free(block);
}
