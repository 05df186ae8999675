/* A child that continues without exec frees what its parent allocated, and allocates; another one
   executes another program. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    void *inherited[10];
    for (int i = 0; i < 10; i++)
        inherited[i] = malloc(6001);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 10; i++)
            free(inherited[i]);
        for (int i = 0; i < 100; i++)
            free(malloc(6002));
        pid_t grandchild = fork();
        if (grandchild == 0) {
            free(malloc(6003));
            _exit(0);
        }
        waitpid(grandchild, NULL, 0);
        exit(0);
    }
    waitpid(child, NULL, 0);
    child = fork();
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(127);
    }
    waitpid(child, NULL, 0);
    child = vfork();
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(127);
    }
    waitpid(child, NULL, 0);
    for (int i = 0; i < 100; i++)
        free(malloc(6004));
    return 0;
}
