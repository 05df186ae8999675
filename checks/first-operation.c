/*
about = "the first call of a new thread may be any of the family"
group = "threads"
standing = "gnu"
source = "mimalloc issue 1304"
why = "a thread cache that does not exist yet"
*/
#include "harness/check.h"
#include <pthread.h>

static void *given;

static void *body(void *which) {
    intptr_t call = (intptr_t)which;
    void *block = call == 0 ? malloc(100) : call == 1 ? calloc(3, 100) : call == 2 ? memalign(256, 100) : NULL;
    if (call == 3) given = realloc(given, 5000);
    if (call == 4) EXPECT(malloc_usable_size(given) >= 100, "a block of 100 bytes has fewer");
    free(given);
    free(block);
    return NULL;
}

CHECK {
    for (intptr_t which = 0; which < 600; which++) {
        pthread_t thread;
        given = malloc(100);
        if (pthread_create(&thread, NULL, body, (void *)(which % 6))) UNSUPPORTED("no thread");
        pthread_join(thread, NULL);
    }
}

#ifdef PLANTED
static __thread int used;
void *malloc(size_t size) {
    used = 1;
    return __libc_malloc(size);
}
void *realloc(void *block, size_t size) {
    if (block && !used) __builtin_trap();
    return __libc_realloc(block, size);
}
#endif
