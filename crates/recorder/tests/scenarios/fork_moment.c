/* While a process forks, the parent frees blocks that the child inherits. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *block;

static void before(void) {
    block = malloc(6401);
}

static void in_parent(void) {
    free(block);
}

int main(void) {
    pthread_atfork(before, in_parent, NULL);
    pid_t child = fork();
    if (child == 0) {
        free(block);
        exit(0);
    }
    waitpid(child, NULL, 0);
    return 0;
}
