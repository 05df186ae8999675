/*
about = "a child of _Fork or clone can allocate, and free what its parent with one thread allocated"
group = "fork"
standing = "robust"
source = "POSIX.1-2024, _Fork; clone(2)"
why = "neither calls the functions that a library has registered for forks"
*/
#include "harness/check.h"
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern pid_t _Fork(void) __attribute__((weak));
static void *inherited[1000];

static int child(void) {
    for (int which = 0; which < 1000; which++) {
        free(inherited[which]);
        inherited[which] = malloc(which * 17 + 1);
        if (!inherited[which]) return 1;
        memset(inherited[which], which, which * 17 + 1);
    }
    for (int which = 0; which < 1000; which++) free(inherited[which]);
    return 0;
}

CHECK {
    for (int way = 0; way < 2; way++) {
        for (int which = 0; which < 1000; which++) inherited[which] = malloc(which * 100);
        pid_t pid = way == 0 && _Fork ? _Fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (pid == 0) _exit(child());
        if (pid < 0) UNSUPPORTED("no process");
        int status = 0;
        waitpid(pid, &status, 0);
        EXPECT(status == 0, "a child of %s ended with status %d", way ? "clone" : "_Fork", status);
        for (int which = 0; which < 1000; which++) free(inherited[which]);
    }
}

#ifdef PLANTED
#include <pthread.h>
static pid_t own;
static void note(void) { own = getpid(); }
__attribute__((constructor)) static void start(void) { note(), pthread_atfork(NULL, NULL, note); }
void *malloc(size_t size) {
    if (own && own != getpid()) __builtin_trap();
    return __libc_malloc(size);
}
#endif
