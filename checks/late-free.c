/*
about = "blocks can be allocated and freed while the process ends"
group = "program"
standing = "robust"
source = "atexit(3); snmalloc issue 809"
why = "destructors of libraries run after those of the allocator"
*/
#include "harness/check.h"

static char *kept[1000];

static void at_end(void) {
    for (int which = 0; which < 1000; which++) free(kept[which]), kept[which] = malloc(100);
}

__attribute__((destructor(101))) static void last(void) {
    for (int which = 0; which < 1000; which++) free(kept[which]), kept[which] = NULL;
}

CHECK {
    for (int which = 0; which < 1000; which++) kept[which] = malloc(1 + which * 100);
    EXPECT(atexit(at_end) == 0, "atexit failed");
}

#ifdef PLANTED
static bool gone;
static void end(void) { gone = true; }
void *malloc(size_t size) {
    // Not in a constructor: the destructors of a program run before what these have registered.
    if (size == 501) atexit(end);
    return __libc_malloc(size);
}
void free(void *block) {
    if (gone && block) __builtin_trap();
    __libc_free(block);
}
#endif
