/* A library that frees what it has in its destructor, after the destructors of what was preloaded. */
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
