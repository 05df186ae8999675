/*
about = "alignments from 64 KiB to 64 GiB give the right address or a clean error"
group = "alignment"
standing = "robust"
source = "quality of implementation"
why = "arenas, huge pages and tagged pointers ask for them"
*/
#include "harness/check.h"

CHECK {
    size_t alignments[] = {64 << 10, 2 << 20, 4 << 20, 32 << 20, 64 << 20, 1ul << 30, 4ul << 30, 64ul << 30};
    for (int which = 0; which < 8; which++) {
        void *block = NULL;
        int error = posix_memalign(&block, alignments[which], 100);
        EXPECT(!error || error == ENOMEM || error == EINVAL, "posix_memalign(%zu, 100) returned %d", alignments[which], error);
        NOTE("%zu MiB=%s", alignments[which] >> 20, error ? "refused" : "a block");
        if (error) continue;
        EXPECT((uintptr_t)block % alignments[which] == 0, "posix_memalign(%zu, 100) returned %p", alignments[which], block);
        memset(block, 1, 100);
        free(block);
    }
}

#ifdef PLANTED
int posix_memalign(void **place, size_t alignment, size_t size) {
    *place = memalign(alignment > 1 << 20 ? 1 << 20 : alignment, size);
    return *place ? 0 : ENOMEM;
}
#endif
