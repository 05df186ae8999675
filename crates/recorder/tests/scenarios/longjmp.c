/* A handler jumps out of whatever the program was doing, also out of writing an event. */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

static sigjmp_buf place;
static volatile int safe;

static void jump(int signal) {
    (void)signal;
    if (safe)
        siglongjmp(place, 1);
}

int main(void) {
    struct itimerval every = {{0, 300}, {0, 300}};
    volatile int jumps = 0;
    signal(SIGALRM, jump);
    setitimer(ITIMER_REAL, &every, NULL);
    while (jumps < 300) {
        if (sigsetjmp(place, 1)) {
            safe = 0;
            jumps++;
            free(malloc(8001)); /* must be on record after every jump */
            continue;
        }
        safe = 1;
        for (;;)
            free(NULL); /* is recorded and enters no allocator: may be left anywhere */
    }
    return 0;
}
