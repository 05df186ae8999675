/*
about = "the library works without randomised addresses, and with the old layout of them"
group = "environment"
standing = "robust"
source = "personality(2); setarch --addr-no-randomize, as debuggers run programs"
why = "the heap, libraries and the stack lie elsewhere, and may meet"
*/
#include "harness/check.h"
#include "harness/traffic.h"
#include <sys/personality.h>
#include <sys/wait.h>

CHECK {
    const char *names[] = {"without randomised addresses", "with the old layout", "with both"};
    unsigned long sets[] = {ADDR_NO_RANDOMIZE, ADDR_COMPAT_LAYOUT, ADDR_NO_RANDOMIZE | ADDR_COMPAT_LAYOUT};
    if (getenv("AGAIN")) _exit(traffic());
    for (int which = 0; which < 3; which++) {
        int status = 0;
        pid_t child = fork();
        if (child < 0) UNSUPPORTED("no process");
        if (child == 0 && personality(sets[which]) == -1) _exit(77);
        if (child == 0) AGAIN("in another personality");
        waitpid(child, &status, 0);
        if (WEXITSTATUS(status) == 77) UNSUPPORTED("the layout of addresses cannot be chosen here");
        EXPECT(status == 0, "a process %s ended with signal %d, exit code %d", names[which], WTERMSIG(status), WEXITSTATUS(status));
    }
}

#ifdef PLANTED
#include <sys/personality.h>
__attribute__((constructor)) static void start(void) {
    if (personality(0xffffffff) & ADDR_NO_RANDOMIZE) abort();
}
#endif
