/* A thread forks while others allocate; the child has one thread and continues. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int stop;

static void *churn(void *unused) {
    (void)unused;
    while (!stop)
        free(malloc(6005));
    return NULL;
}

static void *forker(void *unused) {
    (void)unused;
    for (int i = 0; i < 10; i++) {
        pid_t child = fork();
        if (child == 0) {
            for (int j = 0; j < 1000; j++)
                free(malloc(6006));
            _exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        if (status)
            exit(1);
    }
    return NULL;
}

int main(void) {
    pthread_t churner, thread;
    pthread_create(&churner, NULL, churn, NULL);
    pthread_create(&thread, NULL, forker, NULL);
    pthread_join(thread, NULL);
    stop = 1;
    pthread_join(churner, NULL);
    return 0;
}
