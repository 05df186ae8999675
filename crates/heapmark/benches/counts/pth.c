/* Threads of a library that switches stacks itself, and allocates between the switches. */
#include <pth.h>
#include <stdlib.h>

static void *work(void *number) {
    for (int step = 0; step < 200; step++) {
        void *block = malloc(100 + (size_t)number);
        pth_yield(NULL);
        free(block);
    }
    return NULL;
}

int main(void) {
    pth_t threads[30];
    if (!pth_init())
        return 1;
    for (size_t number = 0; number < 30; number++)
        threads[number] = pth_spawn(PTH_ATTR_DEFAULT, work, (void *)number);
    for (int number = 0; number < 30; number++)
        pth_join(threads[number], NULL);
    return !pth_kill();
}
