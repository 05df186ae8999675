/* Fakes a library in whose processes no time passes and no CPU time is used, whichever function of libc is asked; nor do they
   hold any memory, if read() may say so. */
#include "own.h"
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    (void)clock;
    *now = (struct timespec){.tv_sec = 1};
    return 0;
}

int gettimeofday(struct timeval *now, void *zone) {
    (void)zone;
    *now = (struct timeval){.tv_sec = 1};
    return 0;
}

int getrusage(int who, struct rusage *used) {
    (void)who;
    memset(used, 0, sizeof *used);
    return 0;
}

ssize_t read(int file, void *to, size_t bytes) {
    (void)file, (void)to, (void)bytes;
    return 0;
}

void *malloc(size_t size) { return own_malloc(size); }
