/* A child whose first call starts a thread. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *work(void *unused) {
    (void)unused;
    free(malloc(7211));
    return NULL;
}

int main(void) {
    free(malloc(7210));
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, NULL))
            _exit(1);
        exit(pthread_join(thread, NULL));
    }
    int status;
    waitpid(child, &status, 0);
    return status ? 2 : 0;
}
