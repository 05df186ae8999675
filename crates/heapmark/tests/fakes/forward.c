/* No fake of its own: hands the malloc family on to libc. A fake is linked with this and defines what it does otherwise. */
#include "forward.h"

__attribute__((weak)) void *malloc(size_t size) { return __libc_malloc(size); }
__attribute__((weak)) void free(void *block) { __libc_free(block); }
__attribute__((weak)) void *calloc(size_t count, size_t size) { return __libc_calloc(count, size); }
__attribute__((weak)) void *realloc(void *block, size_t size) { return __libc_realloc(block, size); }
