/* Threads that end by a direct exit system call, which the C library does not see. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *work(void *unused) {
    (void)unused;
    free(malloc(7301));
    syscall(SYS_exit, 0);
    return NULL;
}

int main(void) {
    for (int i = 0; i < 2000; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, NULL) || pthread_join(thread, NULL))
            return 1;
    }
    return 0;
}
