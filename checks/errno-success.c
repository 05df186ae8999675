/*
about = "whether calls that succeed change errno"
group = "errno"
standing = "observe"
source = "ISO C17, 7.5: they may"
why = "programs that test errno instead of the result"
*/
#include "harness/check.h"

CHECK {
    int changed = 0;
    for (size_t size = 1; size <= 16 << 20; size = size * 2 + 5) {
        errno = 3;
        void *block = malloc(size);
        changed += errno != 3;
        errno = 3;
        block = realloc(block, size * 2);
        changed += errno != 3;
        free(block);
    }
    NOTE("calls that changed errno=%d", changed);
}

#ifdef PLANTED

#endif
