/* Two threads of the program's own, each stopped after every number of instructions of a call, once
   for every such number of the other thread: one continues while the other is in the middle. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

enum { STEPS = 50, STACK = 256 << 10, TRAP = 0x100 };

static char stacks[2][STACK] __attribute__((aligned(16)));
static ucontext_t contexts[2], outside;
static volatile int now, left, has_ended[2];

static void step(int signal, siginfo_t *unused, void *context) {
    (void)signal, (void)unused;
    if (--left > 0)
        return;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP;
    int before = now;
    if (has_ended[!before])
        return;
    now = !before;
    swapcontext(&contexts[before], &contexts[now]);
}

static void stop_after(int steps) {
    left = steps;
    __asm__ volatile("pushf; orq %0, (%%rsp); popf" ::"i"(TRAP) : "memory", "cc");
}

static void go_on(void) {
    __asm__ volatile("pushf; andq %0, (%%rsp); popf" ::"i"(~TRAP) : "memory", "cc");
}

static void work(int own) {
    for (int first = 1; first <= STEPS; first++)
        for (int second = 1; second <= STEPS; second++) {
            stop_after(own ? second : first);
            free(NULL); /* is recorded and enters no allocator: may be left anywhere */
            go_on();
            if (has_ended[!own])
                continue;
            /* The other one ends its call and begins the next. */
            now = !own;
            swapcontext(&contexts[own], &contexts[!own]);
        }
    has_ended[own] = 1;
    now = !own;
    setcontext(has_ended[!own] ? &outside : &contexts[!own]);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGTRAP, &action, NULL);
    free(NULL);
    for (int own = 0; own < 2; own++) {
        if (getcontext(&contexts[own]))
            return 1;
        contexts[own].uc_stack.ss_sp = stacks[own];
        contexts[own].uc_stack.ss_size = STACK;
        makecontext(&contexts[own], (void (*)(void))work, 1, own);
    }
    swapcontext(&outside, &contexts[0]);
    printf("%d\n", 2 * STEPS * STEPS);
    return 0;
}
