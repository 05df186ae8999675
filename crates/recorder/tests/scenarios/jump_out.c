/* A handler jumps out of a call of malloc. The program continues at a greater depth, and the frame
   of the call is overwritten, or left as it was. */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { UNTOUCHED = 4096 };

static sigjmp_buf place;

static void jump(int signal) {
    (void)signal;
    siglongjmp(place, 1);
}

static void nothing(volatile char *unused) {
    (void)unused;
}

/* Overwrites a part of its frame and of the stack below. */
__attribute__((noinline)) static void overwrite(void (*use)(volatile char *)) {
    volatile char frame[UNTOUCHED];
    for (int at = 0; at < UNTOUCHED; at++)
        frame[at] = 1;
    use(frame);
}

__attribute__((noinline)) static void work(void (*use)(volatile char *)) {
    volatile char untouched[UNTOUCHED];
    use(untouched);
    for (int i = 0; i < 100000; i++)
        free(malloc(9402));
}

int main(int count, char **words) {
    (void)words;
    void (*volatile use)(volatile char *) = nothing;
    signal(SIGUSR1, jump);
    if (!sigsetjmp(place, 1))
        malloc(9401);
    if (count > 1)
        overwrite(use);
    work(use);
    return 0;
}
