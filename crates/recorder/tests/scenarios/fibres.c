/* Fibres of the C library: each makes its calls a few at a time, on a stack of its own, and frees
   the blocks of the previous one. */
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

enum { FIBRES = 50, ROUNDS = 2000, STACK = 32 << 10 };

static ucontext_t contexts[FIBRES], outside;
static void *handed[FIBRES];
static int running = FIBRES;

static void work(int own) {
    for (int round = 0; round < ROUNDS; round++) {
        void *block = realloc(malloc(6501), 6502);
        swapcontext(&contexts[own], &outside);
        free(handed[(own + 1) % FIBRES]);
        handed[(own + 1) % FIBRES] = NULL;
        free(handed[own]);
        handed[own] = block;
    }
    running--;
}

int main(void) {
    for (int own = 0; own < FIBRES; own++) {
        if (getcontext(&contexts[own]))
            return 1;
        contexts[own].uc_stack.ss_sp = malloc(STACK);
        contexts[own].uc_stack.ss_size = STACK;
        contexts[own].uc_link = &outside;
        makecontext(&contexts[own], (void (*)(void))work, 1, own);
    }
    /* All take the same number of turns, and end in the last. */
    while (running)
        for (int own = 0; own < FIBRES; own++)
            swapcontext(&outside, &contexts[own]);
    for (int own = 0; own < FIBRES; own++) {
        free(contexts[own].uc_stack.ss_sp);
        free(handed[own]);
    }
    return 0;
}
