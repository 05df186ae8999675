/* Fakes an allocator that serves 2000 calls by itself and hands all later ones on to libc. */
#include "own.h"

void *__libc_malloc(size_t size);

void *malloc(size_t size) {
    static int calls;
    return __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) > 2000 ? __libc_malloc(size) : own_malloc(size);
}
