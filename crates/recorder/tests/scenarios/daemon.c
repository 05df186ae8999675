/* A process that goes to the background as daemons do: its parent has ended before its first call.
   It frees blocks that come from there. */
#define _DEFAULT_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static void *blocks[1000];

/* Returns in a process whose parent has ended. */
static void background(void) {
    pid_t parent = getpid();
    pid_t child = fork();
    if (child < 0)
        abort();
    if (child)
        _exit(0);
    while (getppid() == parent)
        usleep(1000);
}

int main(int count, char **words) {
    for (int i = 0; i < 1000; i++)
        blocks[i] = malloc(6301);
    if (count > 1 && !strcmp(words[1], "daemon")) {
        pid_t parent = getpid();
        if (daemon(1, 1))
            return 1;
        while (getppid() == parent)
            usleep(1000);
    } else {
        background();
        if (count > 1) {
            setsid();
            background();
        }
    }
    for (int i = 0; i < 1000; i++)
        free(blocks[i]);
    free(malloc(6302));
    return 0;
}
