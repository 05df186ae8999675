/*
about = "signals that interrupt each call of the system change no result"
group = "threads"
standing = "robust"
source = "signal(7): EINTR"
why = "profilers send one each millisecond, and a library may not take EINTR for a failure"
*/
#include "harness/check.h"
#include <signal.h>
#include <sys/time.h>
#include <time.h>

static volatile int signals;
static void handler(int signal) { signals += signal != 0; }

CHECK {
    struct sigaction action = {.sa_handler = handler}; // without SA_RESTART
    struct itimerval each = {{0, 100}, {0, 100}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &each, NULL);
    unsigned char *blocks[200] = {0};
    size_t sizes[200] = {0};
    clock_t end = clock() + CLOCKS_PER_SEC / 4;
    for (int times = 0; clock() < end; times++) {
        int which = times * 7 % 200;
        EXPECT(!sizes[which] || blocks[which][sizes[which] - 1] == which, "a block of %zu bytes has changed", sizes[which]);
        sizes[which] = 1 + (times * 31 % 50 ? times * 37 % 3000 : times * 1009 % 3000000);
        errno = 0;
        blocks[which] = times % 3 ? realloc(blocks[which], sizes[which]) : (free(blocks[which]), malloc(sizes[which]));
        EXPECT(blocks[which], "an allocation of %zu bytes failed with errno %d", sizes[which], errno);
        blocks[which][sizes[which] - 1] = which;
    }
    EXPECT(signals > 0, "no signal came");
}

#ifdef PLANTED
#include <time.h>
void *malloc(size_t size) {
    struct timespec wait = {0, 50000};
    return size > 100000 && nanosleep(&wait, NULL) != 0 ? NULL : __libc_malloc(size);
}
#endif
