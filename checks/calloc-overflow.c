/*
about = "a product of calloc that overflows returns NULL with ENOMEM"
group = "sizes"
standing = "std"
source = "ISO C17, 7.22.3.2; POSIX.1-2024, calloc"
why = "a block that is smaller than the program believes is a buffer overflow"
*/
#include "harness/check.h"

CHECK {
    size_t half = SIZE_MAX / 2 + 1;
    size_t pairs[][2] = {{half, 2}, {2, half}, {half, 4}, {SIZE_MAX, 2}, {2, SIZE_MAX}, {SIZE_MAX, SIZE_MAX},
                         {SIZE_MAX / 16 + 2, 16}, {16, SIZE_MAX / 16 + 2}, {(size_t)1 << 33, (size_t)1 << 33}};
    for (size_t which = 0; which < sizeof pairs / sizeof *pairs; which++) {
        size_t count = pairs[which][0], size = pairs[which][1];
        errno = 0;
        void *block = calloc(count, size);
        EXPECT(!block, "calloc(%zu, %zu) returned a block", count, size);
        EXPECT(block || errno == ENOMEM, "calloc(%zu, %zu) left errno %d", count, size, errno);
    }
}

#ifdef PLANTED
void *calloc(size_t count, size_t size) {
    return __libc_calloc(1, count * size);
}
#endif
