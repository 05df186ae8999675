/*
about = "new threads can allocate in a program that has taken all thread-specific keys"
group = "threads"
standing = "robust"
source = "PTHREAD_KEYS_MAX is 1024 for the whole process"
why = "a library that takes its key late finds none, and loses the caches of threads that end"
*/
#include "harness/check.h"
#include <pthread.h>

static void *body(void *unused) {
    void *blocks[500];
    for (int which = 0; which < 500; which++) EXPECT(blocks[which] = malloc(16 + which * 40), "malloc failed");
    for (int which = 0; which < 500; which++) free(blocks[which]);
    return unused;
}

CHECK {
    pthread_key_t key;
    int keys = 0;
    while (pthread_key_create(&key, NULL) == 0) keys++;
    NOTE("keys=%d", keys);
    for (int round = 0; round < 50; round++) {
        pthread_t threads[4];
        for (int which = 0; which < 4; which++)
            if (pthread_create(&threads[which], NULL, body, NULL)) UNSUPPORTED("no thread");
        for (int which = 0; which < 4; which++) pthread_join(threads[which], NULL);
    }
}

#ifdef PLANTED
#include <pthread.h>
static pthread_key_t key;
static int has;
void *malloc(size_t size) {
    // In the first call that is large enough, which comes late.
    if (size > 10000 && !has && (has = 1) && pthread_key_create(&key, NULL)) abort();
    return __libc_malloc(size);
}
#endif
