/*
about = "what realloc(block, 0) does"
group = "sizes"
standing = "observe"
source = "C17: implementation-defined; C23: undefined; POSIX.1-2024: NULL with EINVAL or a block"
why = "a program that frees by it leaks or frees twice elsewhere"
*/
#include "harness/check.h"

CHECK {
    void *block = malloc(100);
    errno = 0;
    void *after = realloc(block, 0);
    NOTE("returns=%s", after ? "a block" : "NULL");
    NOTE("errno=%d", errno);
    void *again = after ? NULL : malloc(100);
    if (!after) NOTE("old block=%s", again == block ? "freed" : "not handed out again at once");
    free(after);
}

#ifdef PLANTED

#endif
