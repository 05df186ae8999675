/* Two threads that allocate, free each other's blocks and move some. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { PLACES = 512, ROUNDS = 400000 };
static void *_Atomic places[PLACES];

static void *work(void *seed) {
    unsigned random = (unsigned)(size_t)seed;
    for (int round = 0; round < ROUNDS; round++) {
        random = random * 1664525 + 1013904223;
        unsigned at = random >> 20 & (PLACES - 1), size = 16 + (random >> 8 & 511);
        void *block;
        switch (round & 7) {
        case 0: block = calloc(size, 3); break;
        case 1: block = realloc(malloc(size), size * 2); break;
        case 2: block = aligned_alloc(64, 64); break;
        default: block = malloc(size);
        }
        free(atomic_exchange(&places[at], block));
    }
    return NULL;
}

int main(void) {
    pthread_t other;
    if (pthread_create(&other, NULL, work, (void *)1))
        return 1;
    work((void *)2);
    return pthread_join(other, NULL);
}
