/* Threads that cannot be started, for want of address space, and one that can. */
#include <pthread.h>
#include <stdlib.h>

static void *work(void *unused) {
    (void)unused;
    free(malloc(7201));
    return NULL;
}

int main(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, (size_t)1 << 60))
        return 1;
    for (int i = 0; i < 50; i++)
        if (pthread_create(&thread, &attributes, work, NULL) == 0)
            return 2;
    if (pthread_create(&thread, NULL, work, NULL))
        return 3;
    return pthread_join(thread, NULL);
}
