/*
about = "memalign, pvalloc and valloc of a size that cannot be rounded up return NULL with ENOMEM"
group = "sizes"
standing = "gnu"
source = "glibc tst-pvalloc"
why = "rounding up to a page can wrap to 0"
*/
#include "harness/check.h"

extern void *pvalloc(size_t size), *valloc(size_t size);

static void refused(const char *call, size_t size, void *block) {
    EXPECT(!block, "%s(%zu) returned a block", call, size);
    EXPECT(block || errno == ENOMEM, "%s(%zu) left errno %d", call, size, errno);
    errno = 0;
}

CHECK {
    size_t sizes[] = {SIZE_MAX, SIZE_MAX - 4094, SIZE_MAX - 4095, SIZE_MAX - 4096};
    errno = 0;
    for (int which = 0; which < 4; which++) {
        refused("pvalloc", sizes[which], pvalloc(sizes[which]));
        refused("valloc", sizes[which], valloc(sizes[which]));
        refused("memalign", sizes[which], memalign(4096, sizes[which]));
    }
}

#ifdef PLANTED
void *pvalloc(size_t size) { return memalign(4096, (size + 4095) & ~(size_t)4095); }
#endif
