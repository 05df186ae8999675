/*
about = "a child frees and grows the blocks of its parent"
group = "fork"
standing = "gnu"
source = "fork(2): a copy of the whole process"
why = "servers and test runners fork with full heaps"
*/
#include "harness/check.h"
#include <sys/wait.h>

static int child(unsigned char **blocks) {
    for (int which = 0; which < 1000; which++) {
        if (blocks[which][0] != (unsigned char)which) return 1;
        blocks[which] = realloc(blocks[which], 10 + which * 40);
        if (!blocks[which] || blocks[which][0] != (unsigned char)which) return 2;
    }
    for (int which = 0; which < 1000; which++) free(blocks[which]);
    return malloc(100) ? 0 : 3;
}

CHECK {
    unsigned char *blocks[1000];
    for (int which = 0; which < 1000; which++) memset(blocks[which] = malloc(10 + which * 30), which, 10);
    for (int times = 0; times < 8; times++) {
        pid_t pid = fork();
        if (pid < 0) UNSUPPORTED("no process");
        if (pid == 0) _exit(child(blocks));
        int status = 0;
        waitpid(pid, &status, 0);
        const char *codes[] = {"", "finds other bytes in a block of its parent", "cannot grow a block of its parent", "gets no block"};
        int code = WEXITSTATUS(status);
        EXPECT(!WIFEXITED(status) || code < 1 || code > 3, "a child %s", codes[code & 3]);
        EXPECT(WIFEXITED(status) && code <= 3, "the child ended with signal %d, exit code %d", WTERMSIG(status), code);
    }
}

#ifdef PLANTED
static pid_t made_in;
void *realloc(void *block, size_t size) {
    if (!made_in) made_in = getpid();
    return getpid() == made_in ? __libc_realloc(block, size) : NULL;
}
void *malloc(size_t size) {
    if (!made_in) made_in = getpid();
    return __libc_malloc(size);
}
#endif
