/* Threads that the C library does not know: they share all memory of the thread that made them, its
   thread-local variables too; it waits for them. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static char stack[256 << 10] __attribute__((aligned(16)));
static volatile pid_t running;

static int work(void *unused) {
    (void)unused;
    free(malloc(7311));
    return 0;
}

int main(void) {
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID |
                CLONE_PARENT_SETTID;
    for (int i = 0; i < 2000; i++) {
        if (clone(work, stack + sizeof stack, flags, NULL, &running, NULL, &running) < 0)
            return 1;
        for (pid_t now = running; now; now = running)
            syscall(SYS_futex, &running, FUTEX_WAIT, now, NULL, NULL, 0);
    }
    return 0;
}
