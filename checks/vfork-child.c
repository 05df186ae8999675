/*
about = "a vfork and exec leaves the heap of the parent whole"
group = "fork"
standing = "robust"
source = "vfork(2): the child uses the memory of its parent"
why = "handlers of fork must not run, or must run once"
*/
#include "harness/check.h"
#include <sys/wait.h>

CHECK {
    static unsigned char *blocks[1000];
    for (int which = 0; which < 1000; which++) memset(blocks[which] = malloc(10 + which * 30), which, 10 + which * 30);
    for (int times = 0; times < 20; times++) {
        char *words[] = {"true", NULL};
        int status = 0;
        pid_t child = vfork();
        if (child == 0) execvp("true", words), _exit(127);
        if (child < 0) UNSUPPORTED("no process");
        waitpid(child, &status, 0);
        EXPECT(status == 0, "the program that vfork and exec started ended with status %d", status);
        for (int which = 0; which < 1000; which++) {
            EXPECT(blocks[which][9 + which * 30] == (unsigned char)which, "a block of the parent has changed");
            blocks[which] = realloc(blocks[which], 10 + which * 30 + times);
        }
    }
    for (int which = 0; which < 1000; which++) free(blocks[which]);
}

#ifdef PLANTED
// As an allocator whose lock is taken in the child, which shares it.
static volatile int held;
pid_t vfork(void) { return held = 1, fork(); }
void *realloc(void *block, size_t size) { return held && size > 20000 ? NULL : __libc_realloc(block, size); }
#endif
