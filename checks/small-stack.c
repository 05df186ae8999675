/*
about = "a thread with the smallest stack can allocate"
group = "threads"
standing = "robust"
source = "PTHREAD_STACK_MIN"
why = "allocators with large thread-local tables or deep calls overflow it"
*/
#include "harness/check.h"
#include <limits.h>
#include <pthread.h>

static void *body(void *unused) {
    for (size_t size = 1; size < 200000; size = size * 17 / 16 + 1) {
        char *block = malloc(size);
        if (block) block[0] = 1;
        free(realloc(block, size + 100));
    }
    return unused;
}

CHECK {
    pthread_attr_t smallest;
    pthread_t thread;
    pthread_attr_init(&smallest);
    pthread_attr_setstacksize(&smallest, PTHREAD_STACK_MIN);
    int error = pthread_create(&thread, &smallest, body, NULL);
    EXPECT(error == 0, "pthread_create with %ld bytes of stack returned %d", (long)PTHREAD_STACK_MIN, error);
    if (!error) pthread_join(thread, NULL);
}

#ifdef PLANTED
void *malloc(size_t size) {
    volatile char deep[40000];
    for (int place = 0; place < 40000; place += 1000) deep[place] = 1;
    return __libc_malloc(size + deep[0] - 1);
}
#endif
