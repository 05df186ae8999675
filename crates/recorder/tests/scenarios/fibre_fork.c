/* How deep calls go on the stack of a fibre, below which no guard page would detect an overflow.
   Prints it for each kind of call. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { BELOW = 64 << 10, STACK = 16 << 10, PAINT = 0xa5, FRAME = 512 };

/* What lies below the stack belongs to something else. */
static unsigned char ground[BELOW + STACK] __attribute__((aligned(16)));
static size_t *depths; /* shared with the child */
static ucontext_t outside, inside;

static void usual(void) {
    for (int i = 0; i < 100000; i++)
        free(malloc(6202));
}

static void resized(void) {
    free(realloc(reallocarray(NULL, 2, 1000), 6203));
}

static void aligned(void) {
    void *block = NULL;
    if (posix_memalign(&block, 64, 6204))
        abort();
    free(block);
}

static void large(void) {
    char *block = malloc(8 << 20);
    memset(block, 1, 8 << 20);
    free(block);
}

static void failing(void) {
    free(malloc((size_t)1 << 60));
}

static void first_of_child(void) {
    free(malloc(6205));
}

static void (*const calls[])(void) = {usual, resized, aligned, large, failing, first_of_child};
enum { CALLS = sizeof calls / sizeof *calls };

/* How much of the stack is painted over. */
__attribute__((noinline)) static void measure(int number) {
    unsigned char *stack = ground + BELOW, *top = (unsigned char *)__builtin_frame_address(0) - FRAME, *at = stack;
    for (unsigned char *place = stack; place < top; place++)
        *(volatile unsigned char *)place = PAINT;
    calls[number]();
    while (*(volatile unsigned char *)at == PAINT)
        at++;
    depths[number] = top - at;
}

static int is_untouched(void) {
    for (size_t at = 0; at < BELOW; at++)
        if (ground[at] != PAINT)
            return 0;
    return 1;
}

static void work(void) {
    for (int number = 0; number + 1 < CALLS; number++)
        measure(number);
    pid_t child = fork();
    if (child == 0) {
        measure(CALLS - 1);
        _exit(!is_untouched());
    }
    int status;
    waitpid(child, &status, 0);
    if (status)
        _exit(3);
}

int main(void) {
    depths = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (depths == MAP_FAILED || getcontext(&inside))
        return 1;
    memset(ground, PAINT, sizeof ground);
    inside.uc_stack.ss_sp = ground + BELOW;
    inside.uc_stack.ss_size = STACK;
    inside.uc_link = &outside;
    makecontext(&inside, work, 0);
    if (swapcontext(&outside, &inside))
        return 1;
    if (!is_untouched())
        return 2;
    for (int number = 0; number < CALLS; number++)
        printf("%zu ", depths[number]);
    putchar('\n');
    return 0;
}
