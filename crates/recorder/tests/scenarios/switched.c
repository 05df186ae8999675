/* Threads of the program's own, run one after the other by a timer: its handler switches to another
   stack, between any two instructions, and comes back later. Each is left in the middle of its
   calls while others make theirs. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <ucontext.h>

enum { FIBRES = 3, STACK = 256 << 10, TURNS = 3000 };

static char stacks[FIBRES][STACK] __attribute__((aligned(16)));
static ucontext_t contexts[FIBRES], outside;
static volatile int now, turns;
static volatile long nulls[FIBRES];
static sigset_t timer;

static void next(int signal) {
    int before = now;
    (void)signal;
    if (turns++ >= TURNS)
        return;
    free(malloc(8221)); /* no fibre is ever left within the allocator */
    now = (before + 1) % FIBRES;
    swapcontext(&contexts[before], &contexts[now]);
}

static void work(int own) {
    static volatile int has_ended[FIBRES];
    sigprocmask(SIG_UNBLOCK, &timer, NULL);
    while (turns < TURNS) {
        free(NULL); /* is recorded and enters no allocator: may be left anywhere */
        nulls[own]++;
    }
    has_ended[own] = 1;
    /* Others were left in the middle of a call: they end it. */
    for (int other = 0; other < FIBRES; other++)
        if (!has_ended[other])
            setcontext(&contexts[other]);
    setcontext(&outside);
}

int main(void) {
    struct itimerval every = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    /* Code that switches to another stack sets its mask first; no interruption may come then. */
    sigemptyset(&timer);
    sigaddset(&timer, SIGALRM);
    sigprocmask(SIG_BLOCK, &timer, NULL);
    for (int own = 0; own < FIBRES; own++) {
        if (getcontext(&contexts[own]))
            return 1;
        contexts[own].uc_stack.ss_sp = stacks[own];
        contexts[own].uc_stack.ss_size = STACK;
        makecontext(&contexts[own], (void (*)(void))work, 1, own);
    }
    signal(SIGALRM, next);
    setitimer(ITIMER_REAL, &every, NULL);
    swapcontext(&outside, &contexts[0]);
    setitimer(ITIMER_REAL, &never, NULL);
    long all = 0;
    for (int own = 0; own < FIBRES; own++)
        all += nulls[own];
    printf("%d %ld\n", TURNS, all);
    return 0;
}
