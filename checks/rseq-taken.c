/*
about = "the library works whether or not the C library has registered restartable sequences"
group = "threads"
standing = "robust"
source = "rseq(2): one registration for each thread; tcmalloc issue 144; tunable glibc.pthread.rseq"
why = "caches for each processor need them, and glibc has taken them since 2.35"
*/
#include "harness/check.h"
#include "harness/traffic.h"
#include <dlfcn.h>
#include <pthread.h>

static void *body(void *unused) {
    for (int times = 0; times < 3000; times++) free(memset(malloc(16 + times % 5000), 1, 16));
    return unused;
}

CHECK {
    char *again = getenv("AGAIN");
    unsigned *size = dlsym(RTLD_DEFAULT, "__rseq_size");
    NOTE("rseq of the C library, %s=%s", again ? "refused" : "as usual", size && *size ? "registered" : "not registered");
    for (int times = 0; times < 50; times++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, body, NULL)) UNSUPPORTED("no thread");
        pthread_join(thread, NULL);
    }
    EXPECT(traffic() == 0, "malloc failed");
    if (!again) {
        setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
        AGAIN("without rseq");
    }
}

#ifdef PLANTED
void *malloc(size_t size) {
    if (size == 100 && getenv("GLIBC_TUNABLES")) abort();
    return __libc_malloc(size);
}
#endif
