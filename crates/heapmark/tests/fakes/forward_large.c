/* Fakes an allocator that hands on to libc what is larger than a page. */
#include "own.h"

void *__libc_malloc(size_t size);

void *malloc(size_t size) { return size > 4096 ? __libc_malloc(size) : own_malloc(size); }
