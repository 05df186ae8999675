/*
about = "a child of each kind of parent can do much work: 64 MiB of calls, threads, a child of its own"
group = "fork"
standing = "gnu"
source = "redis issue 15666: the child hung only as its thread cache was first collected"
why = "one block after fork does not reach the locks that a flush, a purge or growth takes"
full = true
seconds = 20
*/
#include "harness/check.h"
#include "harness/traffic.h"
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static volatile bool stop;
static void *inherited[1000];

static void *hammer(void *unused) {
    for (size_t size = 1; !stop; size = size * 5 % 70001 + 1) free(malloc(size));
    return unused;
}
static void *worker(void *failed) { return traffic() ? failed : NULL; }

static int child(int kind) {
    pthread_t thread;
    void *failed = NULL;
    int status = 0;
    if (kind == 1) return traffic();
    for (int which = 0; kind == 2 && which < 1000; which++) free(inherited[which]);
    if (kind == 3) return pthread_create(&thread, NULL, worker, "failed") ? 77 : (pthread_join(thread, &failed), failed != NULL);
    if (kind != 4) return 0;
    pid_t pid = fork();
    if (pid == 0) _exit(traffic());
    return pid < 0 ? 77 : (waitpid(pid, &status, 0), status != 0);
}

CHECK {
    const char *kinds[] = {"end", "allocate 64 MiB", "free 1000 blocks of its parent", "start a thread", "fork"};
    pthread_t threads[4];
    for (int hammers = 0; hammers <= 4; hammers += 4) {
        for (int which = 0; which < hammers; which++)
            if (pthread_create(&threads[which], NULL, hammer, NULL)) UNSUPPORTED("no thread");
        for (int times = 0; times < 15; times++) {
            for (int which = 0; which < 1000; which++) inherited[which] = malloc(which * 10);
            // The others come to run, so that it forks in the midst of their calls.
            usleep(1000);
            pid_t pid = fork();
            if (pid == 0) prctl(PR_SET_PDEATHSIG, 9), _exit(child(times % 5));
            if (pid < 0) UNSUPPORTED("no process");
            int status = 0;
            waitpid(pid, &status, 0);
            if (WEXITSTATUS(status) == 77) UNSUPPORTED("no thread or no process in a child");
            EXPECT(status == 0, "a child that had to %s, beside %d threads, ended with status %d", kinds[times % 5], hammers, status);
            for (int which = 0; which < 1000; which++) free(inherited[which]);
        }
        stop = hammers > 0;
    }
    for (int which = 0; which < 4; which++) pthread_join(threads[which], NULL);
}

#ifdef PLANTED
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int cached;
void free(void *block) {
    // The lock is taken only as a cache is flushed.
    if (++cached % 64 == 0) {
        pthread_mutex_lock(&lock);
        usleep(200);
        pthread_mutex_unlock(&lock);
    }
    __libc_free(block);
}
#endif
