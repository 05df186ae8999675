/*
about = "a signal handler may fork, and its child may end at once, while the process allocates"
group = "fork"
standing = "robust"
source = "POSIX until 2024: fork is async-signal-safe; since then only _Fork"
why = "watchdogs and crash reporters do it"
full = true
seconds = 4
*/
#include "harness/check.h"
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

static volatile int forks;

static void handler(int signal) {
    int error = errno;
    pid_t child = fork();
    if (child == 0) _exit(0);
    if (child > 0) waitpid(child, &signal, 0);
    errno = error, forks++;
}

CHECK {
    struct itimerval each = {{0, 1000}, {0, 1000}};
    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &each, NULL);
    // Each fourth is too large for the caches of threads, so that locks are held most of the time.
    void *blocks[1000] = {0};
    for (unsigned times = 0; forks < 200; times++) {
        free(blocks[times % 1000]);
        blocks[times % 1000] = malloc(times % 4 ? 16 + times % 100 * 37 : 300000);
    }
    signal(SIGALRM, SIG_IGN);
}

#ifdef PLANTED
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void take(void) { pthread_mutex_lock(&lock); }
static void give(void) { pthread_mutex_unlock(&lock); }
__attribute__((constructor)) static void start(void) { pthread_atfork(take, give, give); }
void *malloc(size_t size) {
    take();
    void *block = __libc_malloc(size);
    for (volatile int turns = 0; turns < 100; turns++) {}
    give();
    return block;
}
#endif
