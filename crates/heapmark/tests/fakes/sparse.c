/* Fakes an allocator that gives each block a page. */
#include "own.h"

void *malloc(size_t size) { return own_malloc(size < 4096 ? 4096 : size); }
