/*
about = "calls for information while four threads allocate hang nothing"
group = "program"
standing = "gnu"
source = "mallinfo(3), malloc_info(3), malloc_stats(3)"
why = "monitoring calls them in a thread of its own"
trials = 2
*/
#include "harness/check.h"
#include <dlfcn.h>
#include <pthread.h>

static volatile bool stop;

static void *churn(void *unused) {
    for (size_t size = 1; !stop; size = size * 5 % 70001 + 1) free(realloc(malloc(size), size * 2));
    return unused;
}

CHECK {
    pthread_t threads[4];
    FILE *nowhere = fopen("/dev/null", "w");
    if (!nowhere || dup2(fileno(nowhere), 2) < 0) UNSUPPORTED("no /dev/null");
    for (int which = 0; which < 4; which++)
        if (pthread_create(&threads[which], NULL, churn, NULL)) UNSUPPORTED("no thread");
    // A glibc before 2.33 has none.
    struct mallinfo2 (*mallinfo2)(void) = (struct mallinfo2(*)(void))dlsym(RTLD_DEFAULT, "mallinfo2");
    for (int times = 0; times < 100; times++) {
        if (mallinfo2) mallinfo2();
        malloc_info(0, nowhere);
        malloc_stats();
        malloc_trim(0);
    }
    stop = true;
    for (int which = 0; which < 4; which++) pthread_join(threads[which], NULL);
    EXPECT(malloc(1000), "malloc failed");
}

#ifdef PLANTED
void malloc_stats(void) { __builtin_trap(); }
#endif
