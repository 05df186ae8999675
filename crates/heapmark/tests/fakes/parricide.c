/* Fakes a library that ends the process that has started its own. */
#include <signal.h>
#include <unistd.h>

__attribute__((constructor)) static void end_parent(void) {
    kill(getppid(), SIGKILL);
    for (;;) pause();
}
