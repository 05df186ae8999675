/* A thread with the smallest possible stack forks; its child allocates there. */
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *work(void *unused) {
    (void)unused;
    pid_t child = fork();
    if (child == 0) {
        free(malloc(6101));
        _exit(0);
    }
    static int status;
    waitpid(child, &status, 0);
    return &status;
}

int main(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    void *status;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN) || pthread_create(&thread, &attributes, work, NULL))
        return 1;
    pthread_join(thread, &status);
    return *(int *)status ? 2 : 0;
}
