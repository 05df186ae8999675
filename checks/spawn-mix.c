/*
about = "threads that allocate may start programs by posix_spawn, vfork and system"
group = "fork"
standing = "gnu"
source = "posix_spawn(3), vfork(2), system(3)"
why = "each suspends, copies or shares the memory of a process whose locks are held"
*/
#include "harness/check.h"
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;
static volatile bool stop;

static void *body(void *way) {
    char *words[] = {"true", NULL};
    while (way == NULL && !stop) free(malloc(10 + rand() % 50000));
    for (int times = 0; way && times < 10; times++) {
        int status = 0;
        pid_t pid = 0;
        free(malloc(times * 5000));
        if ((intptr_t)way == 1 && posix_spawnp(&pid, "true", NULL, NULL, words, environ)) pid = -1;
        if ((intptr_t)way == 2 && (pid = vfork()) == 0) execvp("true", words), _exit(127);
        if ((intptr_t)way == 3 && (status = system("true")) == -1) pid = -1;
        if (pid < 0) UNSUPPORTED("no process");
        if (pid > 0) waitpid(pid, &status, 0);
        EXPECT(status == 0, "a program that way %d started ended with status %d", (int)(intptr_t)way, status);
    }
    return NULL;
}

CHECK {
    pthread_t threads[4];
    for (intptr_t way = 0; way < 4; way++)
        if (pthread_create(&threads[way], NULL, body, (void *)way)) UNSUPPORTED("no thread");
    for (int way = 1; way < 4; way++) pthread_join(threads[way], NULL);
    stop = true;
    pthread_join(threads[0], NULL);
}

#ifdef PLANTED
// A library that ends programs which others start.
__attribute__((constructor)) static void start(void) {
    char name[16] = "";
    FILE *file = fopen("/proc/self/comm", "r");
    if (file && fgets(name, sizeof name, file) && strcmp(name, "true\n") == 0) abort();
}
#endif
