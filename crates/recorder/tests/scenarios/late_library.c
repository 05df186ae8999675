/* A library that frees its blocks in its destructor, after those of preloaded libraries. */
#include <stdlib.h>

static void *blocks[1000];

__attribute__((constructor)) static void begin(void) {
    for (int i = 0; i < 1000; i++)
        blocks[i] = malloc(8951);
}

__attribute__((destructor)) static void end(void) {
    for (int i = 0; i < 1000; i++)
        free(blocks[i]);
    for (int i = 0; i < 10; i++)
        free(malloc(8952));
}

void use_late_library(void) {
}
