/* A handler allocates between any two instructions, those of the allocator among them: on a stack of
   its own, which the kernel forgets while the handler runs or not, or on the interrupted one. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif

static volatile sig_atomic_t handled;
static char stack[64 << 10];

static void handle(int signal) {
    (void)signal;
    free(malloc(8231));
    handled++;
}

int main(int count, char **words) {
    int forgets = count > 1 && !strcmp(words[1], "forgotten"), same = count > 1 && !strcmp(words[1], "same");
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack, .ss_flags = forgets ? (int)SS_AUTODISARM : 0};
    struct sigaction action = {.sa_handler = handle, .sa_flags = (same ? 0 : SA_ONSTACK) | SA_RESTART};
    struct itimerval every = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    if (sigaltstack(&other, NULL) || sigaction(SIGALRM, &action, NULL))
        abort();
    setitimer(ITIMER_REAL, &every, NULL);
    while (handled < 2000)
        free(malloc(64));
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%d\n", (int)handled);
    return 0;
}
