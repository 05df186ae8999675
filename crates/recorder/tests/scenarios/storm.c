/* Eight threads allocate into one table and free what they find there, mostly of others. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { THREADS = 8, PLACES = 512, ROUNDS = 30000 };
static _Atomic(void *) table[PLACES];

static void *work(void *number) {
    unsigned state = 12345 + (unsigned)(size_t)number;
    for (int i = 0; i < ROUNDS; i++) {
        state = state * 1664525 + 1013904223;
        void *mine = malloc(7001 + (size_t)number);
        if (i % 8 == 0)
            mine = realloc(mine, 7101);
        free(atomic_exchange(&table[(state >> 16) % PLACES], mine));
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < PLACES; i++)
        free(table[i]);
    return 0;
}
