/* A handler allocates while the program is between any two instructions, also of the recorder. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

static volatile sig_atomic_t handled;
static void *volatile kept;

static void handle(int signal) {
    (void)signal;
    free(kept);
    kept = malloc(8101);
    handled++;
}

int main(void) {
    struct itimerval every = {{0, 200}, {0, 200}};
    signal(SIGALRM, handle);
    setitimer(ITIMER_REAL, &every, NULL);
    long nulls = 0;
    while (handled < 1000) {
        free(NULL); /* is recorded and enters no allocator: a handler may allocate */
        nulls++;
    }
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    free(kept);
    printf("%d %ld\n", (int)handled, nulls);
    return 0;
}
