/* An allocator that calls its own public functions, as simple ones do: these calls are not the
   program's. */
#include <stddef.h>
#include <string.h>

static char arena[64 << 20];
static size_t used;

void *malloc(size_t size) {
    size_t *block = (size_t *)(arena + used);
    size = (size + 15) & ~(size_t)15;
    if (used + size + 16 > sizeof arena)
        return NULL;
    used += size + 16;
    block[1] = size;
    return block + 2;
}

void free(void *block) {
    (void)block;
}

void *calloc(size_t count, size_t size) {
    void *block = malloc(count * size);
    return block ? memset(block, 0, count * size) : block;
}

void *realloc(void *block, size_t size) {
    void *fresh = malloc(size);
    if (block && fresh) {
        size_t old = ((size_t *)block)[-1];
        memcpy(fresh, block, old < size ? old : size);
        free(block);
    }
    return fresh;
}
