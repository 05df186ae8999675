/*
about = "four threads at the limit of memory get NULL, and one of them that frees can allocate again"
group = "memory"
standing = "robust"
source = "LTP: threads that grow blocks until NULL"
why = "a lock that is held, or a cache that is kept, as memory runs out"
trials = 2
seconds = 30
*/
#include "harness/check.h"
#include "harness/fill.h"
#include <pthread.h>
#include <sys/wait.h>

static pthread_barrier_t all;
static size_t first, second;

static void *body(void *which) {
    size_t count;
    pthread_barrier_wait(&all); // all threads are there
    void **blocks = fill(64 << 10, which ? &count : &first);
    pthread_barrier_wait(&all);
    // All are at the limit. One frees what it has, and takes it again.
    if (which == NULL) drain(blocks), drain(fill(64 << 10, &second));
    pthread_barrier_wait(&all);
    if (which != NULL) drain(blocks);
    return NULL;
}

static bool reach_the_limit(size_t bytes) {
    pthread_t threads[4];
    pthread_barrier_init(&all, NULL, 4);
    limit(RLIMIT_DATA, bytes);
    for (intptr_t which = 0; which < 4; which++) if (pthread_create(&threads[which], NULL, body, (void *)which)) return false;
    for (int which = 0; which < 4; which++) pthread_join(threads[which], NULL);
    return true;
}

CHECK {
    // A thread whose first block is asked for as the others reach the limit crashes some allocators, by chance, with little memory or much.
    for (int times = 0, status; times < 40; times++) {
        pid_t pid = fork();
        if (pid == 0) reach_the_limit(times % 2 ? 256 << 20 : 64 << 20), _exit(0);
        if (pid <= 0 || waitpid(pid, &status, 0) != pid) continue;
        if (WIFSIGNALED(status)) kill(getpid(), WTERMSIG(status));
        EXPECT(status == 0, "a process ends with exit code %d where memory ends", WEXITSTATUS(status));
    }
    if (!reach_the_limit(256 << 20)) UNSUPPORTED("no thread");
    EXPECT(second >= first / 2, "%zu blocks of 64 KiB at first, %zu after freeing them", first, second);
    EXPECT(malloc(1 << 20), "malloc(1 MiB) fails after all was freed");
}

#ifdef PLANTED
void *malloc(size_t size) {
    static bool failed;
    void *block = failed && size >= 64 << 10 ? NULL : __libc_malloc(size);
    failed |= !block;
    return block;
}
#endif
