/* Fakes a calloc that returns what was freed as it was left. */
#include "own.h"

void *calloc(size_t count, size_t size) { return own_malloc(count * size); }
