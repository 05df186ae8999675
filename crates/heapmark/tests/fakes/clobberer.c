/* Fakes an allocator that writes into the first word of a live block now and then: of any, or (CLOBBERS=batches) of one that a thread of
   scatter-loops hands to another, which follow a header of 48 bytes and an array. */
#include "forward.h"
#include <stdlib.h>
#include <string.h>

static _Thread_local unsigned *victim;
static _Thread_local int until_victim = 500, until_written;

static int wants_batches(void) {
    static int known;
    if (!known) {
        const char *word = getenv("CLOBBERS");
        known = word && !strcmp(word, "batches") ? 1 : 2;
    }
    return known == 1;
}

void *malloc(size_t size) {
    if (victim && --until_written == 0) {
        *victim ^= 1;
        victim = NULL;
    }
    void *block = __libc_malloc(size);
    if (wants_batches() && size == 48) until_victim = 3;
    if (until_victim && --until_victim == 0) {
        victim = block;
        until_written = 3;
        if (!wants_batches()) until_victim = 500;
    }
    return block;
}

void free(void *block) {
    if (block == victim) victim = NULL;
    __libc_free(block);
}
