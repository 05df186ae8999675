/*
about = "threads that come and go leave nothing behind"
group = "threads"
standing = "robust"
source = "rpmalloc's thread spam, glibc tst-tcache-leak, gperftools' reclaimed thread heaps"
why = "a server with a thread for each connection starts millions of them"
full = true
*/
#include "harness/check.h"
#include "harness/resident.h"
#include <pthread.h>

static void *body(void *unused) {
    void *blocks[256];
    for (int which = 0; which < 256; which++) memset(blocks[which] = malloc(4096), 1, 4096);
    for (int which = 0; which < 256; which++) free(blocks[which]);
    return unused;
}

CHECK {
    size_t early = 0;
    for (int times = 0; times < 1500; times++) {
        pthread_t thread;
        if (times == 100) early = resident();
        if (pthread_create(&thread, NULL, body, NULL)) UNSUPPORTED("no thread");
        pthread_join(thread, NULL);
    }
    size_t late = resident();
    EXPECT(late < early + (64 << 20), "%zu MiB after 100 threads, %zu MiB after 1500", early >> 20, late >> 20);
}

#ifdef PLANTED
static __thread char *cache;
void *malloc(size_t size) {
    if (!cache) cache = memset(__libc_malloc(100000), 1, 100000);
    return __libc_malloc(size);
}
#endif
