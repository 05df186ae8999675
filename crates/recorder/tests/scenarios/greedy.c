/* A library with a malloc that takes two kilobytes of the program's stack, in a function that it
   calls, and a free that takes none. */
#include <stddef.h>

static __attribute__((noinline)) size_t greedy(size_t size) {
    volatile char room[2000];
    room[size % sizeof room] = 1;
    return size + room[0];
}

void *malloc(size_t size) {
    return (void *)greedy(size);
}

void free(void *block) {
    (void)block;
}
