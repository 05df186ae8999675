/* Is loaded late. */
#include <stdlib.h>

static void *kept;

__attribute__((constructor)) static void begin(void) {
    kept = malloc(8701);
}

void work(void) {
    for (int i = 0; i < 10; i++)
        free(malloc(8702));
}

__attribute__((destructor)) static void end(void) {
    free(kept);
}
