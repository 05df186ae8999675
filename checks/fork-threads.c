/*
about = "a child of a process whose threads allocate can allocate itself"
group = "fork"
standing = "gnu"
source = "glibc and musl give more than POSIX asks for; glibc tst-malloc-fork-deadlock"
why = "a lock that another thread held is held for ever in the child"
*/
#include "harness/check.h"
#include <pthread.h>
#include <sys/wait.h>

static volatile bool stop;

static void *hammer(void *unused) {
    // More than a thread's cache has, so that the locks behind it are held at most times.
    void *blocks[64];
    unsigned seed = 1;
    while (!stop) {
        for (int which = 0; which < 64; which++) blocks[which] = malloc(10 + rand_r(&seed) % 20000);
        for (int which = 0; which < 64; which++) free(blocks[which]);
    }
    return unused;
}

CHECK {
    pthread_t threads[3];
    for (int which = 0; which < 3; which++)
        if (pthread_create(&threads[which], NULL, hammer, NULL)) UNSUPPORTED("no thread");
    for (int times = 0; times < 60; times++) {
        int status = 0;
        pid_t pid = fork();
        if (pid < 0) UNSUPPORTED("no process");
        for (size_t size = 1; pid == 0 && size < 4 << 20; size = size * 9 / 8 + 1) free(malloc(size));
        if (pid == 0) _exit(0);
        waitpid(pid, &status, 0);
        EXPECT(status == 0, "the child ended with signal %d, exit code %d", WTERMSIG(status), WEXITSTATUS(status));
    }
    stop = true;
    for (int which = 0; which < 3; which++) pthread_join(threads[which], NULL);
}

#ifdef PLANTED
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
void *malloc(size_t size) {
    pthread_mutex_lock(&lock);
    void *block = __libc_malloc(size);
    usleep(50);
    pthread_mutex_unlock(&lock);
    return block;
}
#endif
