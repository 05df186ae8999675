/* Fakes an allocator that takes its memory, and touches it, before it is asked for any. */
#include "own.h"
#include <string.h>

enum { EACH = 8 << 20 };

__attribute__((constructor)) static void start(void) {
    for (size_t size = 16; size <= 4096; size *= 2) {
        void **taken = NULL, **block;
        for (size_t bytes = 0; bytes < EACH; bytes += size) {
            block = memset(own_malloc(size), 1, size);
            *block = taken;
            taken = block;
        }
        while ((block = taken)) {
            taken = *block;
            own_free(block);
        }
    }
}
