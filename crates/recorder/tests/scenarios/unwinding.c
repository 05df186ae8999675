/* Threads that end by unwinding: pthread_exit from deep inside, and a cancellation. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void cleanup(void *block) {
    free(block);
}

static void *leave(void *unused) {
    void *block = malloc(8301);
    (void)unused;
    pthread_cleanup_push(cleanup, block);
    pthread_exit((void *)7);
    pthread_cleanup_pop(0);
    return NULL;
}

static void *wait(void *unused) {
    void *block = malloc(8302);
    (void)unused;
    pthread_cleanup_push(cleanup, block);
    for (;;)
        pause();
    pthread_cleanup_pop(0);
    return NULL;
}

int main(void) {
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, leave, NULL);
    pthread_join(thread, &result);
    if (result != (void *)7)
        return 1;
    pthread_create(&thread, NULL, wait, NULL);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    return result == PTHREAD_CANCELED ? 0 : 2;
}
