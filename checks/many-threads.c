/*
about = "500 threads can be alive and allocate at once"
group = "threads"
standing = "robust"
source = "thread pools of databases and of languages with a thread for each task"
why = "arenas and caches for each thread have limits"
full = true
seconds = 30
*/
#include "harness/check.h"
#include "harness/resident.h"
#include <pthread.h>

static pthread_barrier_t all;

static void *body(void *unused) {
    void *blocks[40];
    for (int which = 0; which < 40; which++)
        if (!(blocks[which] = malloc(16 + which * which * 10))) EXPECT(0, "malloc failed in one of 500 threads");
    pthread_barrier_wait(&all);
    pthread_barrier_wait(&all);
    for (int which = 0; which < 40; which++) free(blocks[which]);
    return unused;
}

CHECK {
    pthread_t threads[500];
    size_t before = resident();
    pthread_barrier_init(&all, NULL, 501);
    for (int which = 0; which < 500; which++)
        if (pthread_create(&threads[which], NULL, body, NULL)) UNSUPPORTED("%d threads, and no more", which);
    pthread_barrier_wait(&all);
    NOTE("resident for each thread=%zu KiB", (resident() - before) / 500 >> 10);
    pthread_barrier_wait(&all);
    for (int which = 0; which < 500; which++) pthread_join(threads[which], NULL);
}

#ifdef PLANTED
static int caches;
static __thread int has;
void *malloc(size_t size) {
    if (!has) has = __atomic_add_fetch(&caches, 1, __ATOMIC_RELAXED);
    return has > 400 ? NULL : __libc_malloc(size);
}
#endif
