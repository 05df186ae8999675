/* Fakes an allocator that now and then hands out a block that is live, and large enough: what is written beyond a block would destroy the
   heads of others, and a crash might come first. */
#include "own.h"

static char *last;

void *malloc(size_t size) {
    static int calls;
    if (++calls >= 100 && last && own_size(last) >= size) {
        calls = 0;
        return last;
    }
    return last = own_malloc(size);
}

void free(void *block) {
    if (block == last) last = NULL;
    own_free(block);
}
