/* Fakes a library that starts a process of its own, which would run on beside all later measurements. */
#include <unistd.h>

__attribute__((constructor)) static void breed(void) {
    if (fork() == 0)
        for (;;) pause();
}
