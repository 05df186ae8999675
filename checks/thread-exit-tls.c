/*
about = "destructors of thread-specific data may allocate and free, and set their data again"
group = "threads"
standing = "gnu"
source = "POSIX.1-2024, pthread_key_create; snmalloc multi_setspecific"
why = "they run when the thread cache of the allocator may be gone"
*/
#include "harness/check.h"
#include <pthread.h>

static pthread_key_t keys[48];
struct value {
    int key, rounds;
};

static void set(int key, int rounds) {
    struct value *value = malloc(50);
    *value = (struct value){key, rounds};
    pthread_setspecific(keys[key], value);
}

// Sets its key again, so that destructors run in three rounds.
static void destructor(void *block) {
    struct value value = *(struct value *)block;
    free(block);
    if (value.rounds > 1) set(value.key, value.rounds - 1);
    free(malloc(100));
}

static void *body(void *unused) {
    for (int which = 0; which < 48; which++) set(which, 3);
    return unused;
}

CHECK {
    for (int which = 0; which < 48; which++) pthread_key_create(&keys[which], destructor);
    for (int round = 0; round < 300; round++) {
        pthread_t threads[4];
        for (int which = 0; which < 4; which++)
            if (pthread_create(&threads[which], NULL, body, NULL)) UNSUPPORTED("no thread");
        for (int which = 0; which < 4; which++) pthread_join(threads[which], NULL);
    }
}

#ifdef PLANTED
static __thread int frees;
void free(void *block) {
    // As a cache that is gone after some frees of the dying thread.
    if (block && ++frees == 200) __builtin_trap();
    __libc_free(block);
}
#endif
