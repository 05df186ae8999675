/* Prepares something for each thread before its first block, which takes 100 ms: far more than a busy machine adds to it. */
#include "own.h"
#include <unistd.h>

static __thread char known;

void *malloc(size_t size) {
    if (!known) {
        known = 1;
        usleep(100000);
    }
    return own_malloc(size);
}
