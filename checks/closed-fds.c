/*
about = "a library that starts with standard input, output and error closed does not take their numbers, and leaks none"
group = "environment"
standing = "robust"
source = "daemons; open(2): the lowest number that is free"
why = "what the program then writes to its standard output goes into a file of the library"
*/
#include "harness/check.h"
#include "harness/traffic.h"
#include <fcntl.h>
#include <pthread.h>

static int opened(void) {
    int count = 0;
    for (int file = 0; file < 900; file++) count += fcntl(file, F_GETFD) >= 0;
    return count;
}

static void *body(void *unused) {
    for (size_t size = 1; size < 32 << 20; size = size * 2 + 1) free(malloc(size));
    return unused;
}

CHECK {
    if (!getenv("AGAIN")) {
        close(0), close(1), close(2);
        AGAIN("closed");
    }
    for (int file = 0; file < 3; file++) EXPECT(fcntl(file, F_GETFD) < 0, "file descriptor %d is open after the start", file);
    int before = opened();
    for (int times = 0; times < 20; times++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, body, NULL)) UNSUPPORTED("no thread");
        pthread_join(thread, NULL);
    }
    EXPECT(traffic() == 0, "malloc failed");
    for (int file = 0; file < 3; file++) EXPECT(fcntl(file, F_GETFD) < 0, "file descriptor %d is open after calls", file);
    EXPECT(opened() == before, "%d open files before the calls, %d after them", before, opened());
}

#ifdef PLANTED
#include <fcntl.h>
__attribute__((constructor)) static void start(void) {
    if (open("/dev/null", O_WRONLY) < 0) abort();
}
#endif
