/* Fakes nothing: a library with memory of its own. */
#include "own.h"

void *malloc(size_t size) { return own_malloc(size); }
