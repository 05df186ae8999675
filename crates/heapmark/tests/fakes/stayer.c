/* Fakes an allocator whose blocks have so much room that realloc moves none below 100 KiB. */
#include "own.h"

enum { ROOM = 100 << 10 };

void *malloc(size_t size) { return own_malloc(size < ROOM ? ROOM : size); }

void *realloc(void *block, size_t size) {
    return block && own_has(block) && size <= own_size(block) ? block : own_realloc(block, size);
}
