/* Prepares something for each thread before its first block, which takes 20 ms. */
#include "own.h"
#include <unistd.h>

static __thread char known;

void *malloc(size_t size) {
    if (!known) {
        known = 1;
        usleep(20000);
    }
    return own_malloc(size);
}
