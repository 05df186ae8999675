/*
about = "threads that the library starts block all signals"
group = "threads"
standing = "robust"
source = "signal(7): a signal of the process goes to any thread that does not block it"
why = "a helper that takes the signals of the program breaks sigwait and EINTR"
*/
#include "harness/check.h"
#include <dirent.h>

static void look(int task) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/status", task);
    FILE *status = fopen(path, "r");
    while (status && fgets(line, sizeof line, status))
        // All but KILL, STOP and the two that the C library keeps.
        if (strncmp(line, "SigBlk:", 7) == 0 && (strtoull(line + 7, NULL, 16) | 0x180040100) != ~0ull)
            EXPECT(0, "a thread of the library has the signal mask %.16s", line + 8);
    if (status) fclose(status);
}

CHECK {
    int helpers = 0;
    for (size_t size = 1; size < 8 << 20; size *= 2) free(malloc(size));
    usleep(200000);
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; (task = readdir(tasks));)
        if (atoi(task->d_name) && atoi(task->d_name) != getpid()) look(atoi(task->d_name)), helpers++;
    closedir(tasks);
    NOTE("helper threads=%d", helpers);
}

#ifdef PLANTED
#include <pthread.h>
static void *helper(void *unused) {
    pause();
    return unused;
}
__attribute__((constructor)) static void start(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, helper, NULL);
}
#endif
