/* Forgets one free in eight. */
#include "own.h"

void free(void *block) {
    static unsigned frees;
    if (__atomic_fetch_add(&frees, 1, __ATOMIC_RELAXED) % 8 || !own_has(block)) own_free(block);
}
