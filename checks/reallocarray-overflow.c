/*
about = "a product of reallocarray that overflows returns NULL with ENOMEM and keeps the block"
group = "sizes"
standing = "std"
source = "POSIX.1-2024, reallocarray"
why = "programs call it for exactly this check"
*/
#include "harness/check.h"

CHECK {
    size_t half = SIZE_MAX / 2 + 1;
    size_t pairs[][2] = {{half, 2}, {2, half}, {SIZE_MAX, 2}, {SIZE_MAX / 16 + 2, 16}, {16, SIZE_MAX / 16 + 2}};
    char *kept = malloc(100);
    memset(kept, 7, 100);
    for (size_t which = 0; which < sizeof pairs / sizeof *pairs; which++) {
        size_t count = pairs[which][0], size = pairs[which][1];
        errno = 0;
        EXPECT(!reallocarray(kept, count, size), "reallocarray(%zu, %zu) returned a block", count, size);
        EXPECT(errno == ENOMEM, "reallocarray(%zu, %zu) left errno %d", count, size, errno);
    }
    for (int place = 0; place < 100; place++) EXPECT(kept[place] == 7, "byte %d of the block has changed", place);
    free(kept);
}

#ifdef PLANTED
void *reallocarray(void *block, size_t count, size_t size) { return realloc(block, count * size + 1); }
#endif
