/* No fake of its own: aligned blocks of its own memory, too. The word in front of one leads to the block that it lies in. */
#include "own.h"
#include <stdint.h>
#include <string.h>

/* Blocks of own_malloc lie 16 bytes above a multiple of this. */
enum { UNIT = 32 };

static int is_aligned(void *block) { return own_has(block) && (uintptr_t)block % UNIT == 0; }

static void *around(void *block) { return ((void **)block)[-1]; }

int posix_memalign(void **block, size_t alignment, size_t size) {
    char *start = own_malloc(alignment < UNIT ? size : size + 2 * alignment);
    if (!start) return 12;
    if (alignment < UNIT) {
        *block = start;
    } else {
        uintptr_t aligned = ((uintptr_t)start / alignment + 1) * alignment;
        ((void **)aligned)[-1] = start;
        *block = (void *)aligned;
    }
    return 0;
}

void free(void *block) {
#ifdef FORGETS_ALIGNED
    if (is_aligned(block)) return;
#endif
    own_free(is_aligned(block) ? around(block) : block);
}

void *realloc(void *block, size_t size) {
    if (!is_aligned(block)) return own_realloc(block, size);
    size_t had = own_size(around(block)) - ((char *)block - (char *)around(block));
    void *moved = own_malloc(size);
    if (!moved) return NULL;
    memcpy(moved, block, had < size ? had : size);
    free(block);
    return moved;
}
