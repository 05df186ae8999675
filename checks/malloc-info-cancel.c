/*
about = "a thread that is cancelled inside malloc_info or malloc_stats leaves no lock behind"
group = "program"
standing = "gnu"
source = "glibc tst-malloc-stats-cancellation"
why = "they write to a file, which is a point of cancellation"
trials = 4
*/
#include "harness/check.h"
#include <dlfcn.h>
#include <pthread.h>

static void (*stats)(void);
static int (*info)(int, FILE *);

static void *report(void *file) {
    for (;; pthread_testcancel()) {
        if (stats) stats();
        if (info) info(0, file);
    }
    return NULL;
}

// A function of the object that serves malloc: those of another one know nothing of its blocks.
static void *own(const char *name) {
    Dl_info its, of_malloc;
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!found || !dladdr(found, &its) || !dladdr(dlsym(RTLD_DEFAULT, "malloc"), &of_malloc)) return NULL;
    return its.dli_fbase == of_malloc.dli_fbase ? found : NULL;
}

static void *works(void *unused) {
    for (size_t size = 1; size < 1 << 20; size = size * 2 + 1) free(malloc(size));
    return unused;
}

CHECK {
    FILE *nowhere = fopen("/dev/null", "w");
    if (!nowhere || dup2(fileno(nowhere), 2) < 0) UNSUPPORTED("no /dev/null");
    stats = own("malloc_stats"), info = own("malloc_info");
    if (!stats && !info) UNSUPPORTED("malloc_stats and malloc_info are the C library's, and malloc is not");
    // What it prepares at its first call is not the question.
    if (stats) stats();
    for (int times = 0; times < 50; times++) {
        pthread_t reporter, worker;
        // A file of its own each time: a cancelled thread may leave that locked.
        if (pthread_create(&reporter, NULL, report, fopen("/dev/null", "w"))) UNSUPPORTED("no thread");
        usleep(times * 20);
        pthread_cancel(reporter);
        pthread_join(reporter, NULL);
        if (pthread_create(&worker, NULL, works, NULL)) UNSUPPORTED("no thread");
        pthread_join(worker, NULL);
    }
}

#ifdef PLANTED
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
void *malloc(size_t size) {
    pthread_mutex_lock(&lock);
    void *block = __libc_malloc(size);
    pthread_mutex_unlock(&lock);
    return block;
}
void malloc_stats(void) {
    pthread_mutex_lock(&lock);
    pthread_testcancel(), usleep(1000);
    pthread_mutex_unlock(&lock);
}
#endif
