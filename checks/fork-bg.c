/*
about = "helper threads and memory that is given back, in a child"
group = "fork"
standing = "observe"
source = "fork(2): only the calling thread goes on in the child"
why = "a library that leaves giving back to a thread of its own gives nothing back in a child"
full = true
*/
#include "harness/check.h"
#include "harness/resident.h"
#include <dirent.h>
#include <sys/wait.h>

static void look(const char *where) {
    static char *blocks[16000];
    size_t before = resident();
    for (int which = 0; which < 16000; which++) memset(blocks[which] = malloc(4000), 1, 4000);
    size_t peak = resident();
    for (int which = 0; which < 16000; which++) free(blocks[which]);
    usleep(1500000);
    size_t now = resident();
    NOTE("held in the %s after 1.5 s=%zu %%", where, now > before && peak > before ? (now - before) * 100 / (peak - before) : 0);
    int threads = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks && (task = readdir(tasks));) threads += task->d_name[0] != '.';
    NOTE("threads in the %s=%d", where, threads);
}

CHECK {
    look("parent");
    pid_t child = fork();
    if (child == 0) look("child"), _exit(0);
    waitpid(child, NULL, 0);
}

#ifdef PLANTED

#endif
