/* Threads that each change the size of a block as often as it takes to fill a chunk of events. */
#include <pthread.h>
#include <stdlib.h>

static void *resize(void *unused) {
    void *block = malloc(100);
    for (int times = 0; times < 6000; times++)
        block = realloc(block, 100 + times % 7);
    free(block);
    return unused;
}

int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, resize, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
