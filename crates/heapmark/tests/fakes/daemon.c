/* Fakes a library that starts a helper as daemons are started: out of its group, its session and its tree. */
#include <unistd.h>

__attribute__((constructor)) static void send_to_background(void) {
    if (fork() != 0) return;
    setsid();
    if (fork() != 0) _exit(0);
    for (;;) pause();
}
