/* Another thread reallocates a thread's block. */
#include <pthread.h>
#include <stdlib.h>

static void *grow(void *block) {
    for (size_t size = 8402; size < 8502; size++)
        block = realloc(block, size * 16);
    return block;
}

int main(void) {
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        void *block = malloc(8401);
        pthread_create(&thread, NULL, grow, block);
        pthread_join(thread, &block);
        free(block);
    }
    return 0;
}
