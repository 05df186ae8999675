/*
about = "posix_memalign refuses what is no alignment, and keeps the pointer"
group = "alignment"
standing = "std"
source = "POSIX.1-2024, posix_memalign"
why = "a wrong alignment that is accepted is a block that is not aligned"
*/
#include "harness/check.h"

CHECK {
    size_t wrong[] = {0, 1, 2, 3, 4, 7, 12, 24, 96, SIZE_MAX};
    char place;
    for (size_t which = 0; which < sizeof wrong / sizeof *wrong; which++) {
        void *block = &place;
        int error = posix_memalign(&block, wrong[which], 100);
        EXPECT(error == EINVAL, "posix_memalign(%zu, 100) returned %d", wrong[which], error);
        EXPECT(block == &place || !block, "posix_memalign(%zu, 100) failed and wrote %p", wrong[which], block);
    }
    void *block = &place;
    int error = posix_memalign(&block, (size_t)1 << 63, 100);
    EXPECT(error == EINVAL || error == ENOMEM, "posix_memalign(2^63, 100) returned %d", error);
}

#ifdef PLANTED
int posix_memalign(void **place, size_t alignment, size_t size) {
    *place = memalign(alignment ? alignment : 1, size);
    return *place ? 0 : ENOMEM;
}
#endif
