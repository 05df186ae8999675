/*
about = "the first call of a thread that ends at once may be a realloc of a foreign block"
group = "threads"
standing = "gnu"
source = "mimalloc issue 1304: realloc as first call of a thread"
why = "growing in place, shrinking and freeing by realloc take paths of their own"
*/
#include "harness/check.h"
#include "harness/resident.h"
#include <pthread.h>

static unsigned char *given;
static size_t sizes[] = {1, 5000, 5100, 20000, 3 << 20};

static void *body(void *which) {
    intptr_t call = (intptr_t)which;
    given = realloc(given, sizes[call]);
    EXPECT(given && given[0] == 7, "the first call of a thread, realloc to %zu bytes, changed the contents", sizes[call]);
    return NULL;
}

static void threads(int count) {
    for (intptr_t which = 0; which < count; which++) {
        pthread_t thread;
        given = memset(malloc(5000), 7, 5000);
        if (pthread_create(&thread, NULL, body, (void *)(which % 5))) UNSUPPORTED("no thread");
        pthread_join(thread, NULL);
        free(given);
    }
}

CHECK {
    threads(200);
    size_t before = resident();
    threads(800);
    size_t after = resident();
    EXPECT(after < before + (16 << 20), "%zu MiB after 200 threads, %zu MiB after 1000", before >> 20, after >> 20);
}

#ifdef PLANTED
static __thread int used;
void *malloc(size_t size) {
    used = 1;
    return __libc_malloc(size);
}
void *realloc(void *block, size_t size) {
    if (used || !block || size < malloc_usable_size(block)) return __libc_realloc(block, size);
    return __libc_malloc(size);
}
#endif
