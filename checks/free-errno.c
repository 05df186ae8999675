/*
about = "free keeps errno"
group = "errno"
standing = "std"
source = "POSIX.1-2024, free"
why = "clean-up between a failure and its report must not change the report"
*/
#include "harness/check.h"

CHECK {
    for (size_t size = 1; size <= 60 << 20; size = size * 2 + 7) {
        char *block = malloc(size), *other = malloc(size);
        if (!block || !other) UNSUPPORTED("malloc(%zu) failed", size);
        block[0] = other[size - 1] = 1;
        errno = 3;
        free(block);
        EXPECT(errno == 3, "free of %zu bytes set errno to %d", size, errno);
        errno = 3;
        free(other);
        EXPECT(errno == 3, "free of %zu bytes set errno to %d", size, errno);
    }
}

#ifdef PLANTED
void free(void *block) {
    __libc_free(block);
    errno = EINVAL;
}
#endif
