/*
about = "a thread may outlive main, free its blocks and end the process"
group = "threads"
standing = "robust"
source = "POSIX.1-2024, pthread_exit in main; snmalloc issue 809, gperftools issue 584"
why = "the heap of the main thread is often the one of the process"
*/
#include "harness/check.h"
#include <pthread.h>
#include <sys/wait.h>

static unsigned char *blocks[1000];

static void at_end(void) {
    for (int which = 0; which < 1000; which++) free(blocks[which]), blocks[which] = malloc(100);
}

static void *outlives(void *main_thread) {
    pthread_join(*(pthread_t *)main_thread, NULL);
    for (int which = 0; which < 1000; which++) {
        if (blocks[which][0] != (unsigned char)which) _exit(9);
        blocks[which] = realloc(blocks[which], 10 + which * 40);
    }
    exit(0);
}

CHECK {
    int status = 0;
    pid_t child = fork();
    if (child < 0) UNSUPPORTED("no process");
    if (child == 0) {
        static pthread_t own, other;
        own = pthread_self();
        atexit(at_end);
        for (int which = 0; which < 1000; which++) memset(blocks[which] = malloc(10 + which * 30), which, 10);
        if (pthread_create(&other, NULL, outlives, &own)) _exit(77);
        pthread_exit(NULL);
    }
    waitpid(child, &status, 0);
    if (WEXITSTATUS(status) == 77) UNSUPPORTED("no thread");
    EXPECT(status == 0, "the process ended with signal %d, exit code %d", WTERMSIG(status), WEXITSTATUS(status));
}

#ifdef PLANTED
#include <pthread.h>
static int gone;
static void end(void *unused) { gone = unused != NULL; }
void *realloc(void *block, size_t size) {
    if (gone) __builtin_trap();
    return __libc_realloc(block, size);
}
void *malloc(size_t size) {
    static pthread_key_t key;
    if (!key && size == 10) pthread_key_create(&key, end), pthread_setspecific(key, &gone);
    return __libc_malloc(size);
}
#endif
