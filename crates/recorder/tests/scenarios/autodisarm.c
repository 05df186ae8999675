/* A handler allocates between any two instructions, on a stack of its own that the kernel forgets
   while the handler runs, and that lies above the interrupted stack. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif

enum { STACK = 256 << 10 };

static char *stacks;
static volatile sig_atomic_t handled;
static long nulls;
static void *volatile kept;

static void handle(int signal) {
    char here;
    (void)signal;
    if (&here < stacks + STACK)
        abort();
    free(kept);
    kept = malloc(8211);
    handled++;
}

static void *work(void *unused) {
    (void)unused;
    stack_t other = {.ss_sp = stacks + STACK, .ss_size = STACK, .ss_flags = (int)SS_AUTODISARM};
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK | SA_RESTART};
    struct itimerval every = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    if (sigaltstack(&other, NULL) || sigaction(SIGALRM, &action, NULL))
        abort();
    pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    for (; handled < 1000; nulls++)
        free(NULL); /* is recorded and enters no allocator: a handler may allocate */
    setitimer(ITIMER_REAL, &never, NULL);
    free(kept);
    printf("%d %ld\n", (int)handled, nulls);
    exit(0); /* the C library frees NULL when a thread ends */
}

int main(void) {
    sigset_t alarm;
    pthread_attr_t attributes;
    pthread_t thread;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    stacks = mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_init(&attributes);
    if (stacks == MAP_FAILED || pthread_attr_setstack(&attributes, stacks, STACK) ||
        pthread_create(&thread, &attributes, work, NULL))
        return 1;
    return pthread_join(thread, NULL);
}
