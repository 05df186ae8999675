/* The memory of a fake, under names that no fake overrides. */
#include <stddef.h>

void *own_malloc(size_t size);
void own_free(void *block);
void *own_calloc(size_t count, size_t size);
void *own_realloc(void *block, size_t size);

/* Whether a block is of that memory. */
int own_has(void *block);

/* The bytes that a block of that memory has room for. */
size_t own_size(void *block);
