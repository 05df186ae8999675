/*
about = "free(NULL) does nothing"
group = "sizes"
standing = "std"
source = "ISO C17, 7.22.3.3"
why = "most clean-up code relies on it"
*/
#include "harness/check.h"

CHECK {
    errno = 3;
    for (int times = 0; times < 1000; times++) free(NULL);
    EXPECT(errno == 3, "free(NULL) set errno to %d", errno);
    char *block = malloc(10);
    EXPECT(block, "malloc(10) failed after free(NULL)");
    free(block);
}

#ifdef PLANTED
void free(void *block) {
    if (!block) __builtin_trap();
    __libc_free(block);
}
#endif
