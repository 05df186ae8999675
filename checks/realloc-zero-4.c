/*
about = "realloc and reallocarray of a block to no bytes do the same thing"
group = "sizes"
standing = "robust"
source = "C17, C23 and POSIX.1-2024 differ, but one library should agree with itself"
why = "a program that has found out what one of them does relies on it"
*/
#include "harness/check.h"
#include "harness/resident.h"

// 0: a block, 1: NULL and the block is freed, 2: NULL and the block is kept.
static int does(int call) {
    size_t before = resident();
    int blocks = 0;
    for (int times = 0; times < 1000; times++) {
        void *block = memset(malloc(64 << 10), 1, 64 << 10);
        void *after = call == 0 ? realloc(block, 0) : call == 1 ? reallocarray(block, 0, 8) : reallocarray(block, 8, 0);
        blocks += after != NULL;
        free(after);
    }
    return blocks == 1000 ? 0 : resident() > before + (40 << 20) ? 2 : 1;
}

CHECK {
    const char *call[] = {"realloc(p, 0)", "reallocarray(p, 0, 8)", "reallocarray(p, 8, 0)"};
    const char *words[] = {"a block", "NULL and freed", "NULL and kept"};
    int first = does(0);
    NOTE("realloc(p, 0)=%s", words[first]);
    for (int which = 1; which < 3; which++) {
        int other = does(which);
        EXPECT(other == first, "%s gives %s, but %s gives %s", call[0], words[first], call[which], words[other]);
    }
    NOTE("realloc(NULL, 0)=%s", realloc(NULL, 0) ? "a block" : "NULL");
}

#ifdef PLANTED
void *reallocarray(void *block, size_t count, size_t size) {
    return count && size ? realloc(block, count * size) : realloc(block, 1);
}
#endif
