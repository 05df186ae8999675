/* Fakes nothing: a library that serves malloc by libc's. */
#include "forward.h"

void *malloc(size_t size) { return __libc_malloc(size); }
