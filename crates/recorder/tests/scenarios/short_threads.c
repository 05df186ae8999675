/* Many threads, one after the other, each with one block. */
#include <pthread.h>
#include <stdlib.h>

static void *work(void *unused) {
    (void)unused;
    free(malloc(7001));
    return NULL;
}

int main(int count, char **words) {
    for (int i = count > 1 ? atoi(words[1]) : 0; i > 0; i--) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, NULL) != 0)
            return 1;
        pthread_join(thread, NULL);
    }
    return 0;
}
