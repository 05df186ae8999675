/*
about = "aligned blocks are aligned, as large as asked for, and can be freed"
group = "alignment"
standing = "std"
source = "POSIX.1-2024, posix_memalign"
why = "vector code, direct I/O and page-sized buffers"
*/
#include "harness/check.h"

CHECK {
    for (size_t alignment = 8; alignment <= 4 << 20; alignment *= 2) {
        for (size_t size = 1; size <= 70000; size = size * 5 / 2 + 1) {
            void *block = NULL;
            int error = posix_memalign(&block, alignment, size);
            EXPECT(error == 0, "posix_memalign(%zu, %zu) returned %d", alignment, size, error);
            if (error) continue;
            EXPECT((uintptr_t)block % alignment == 0, "posix_memalign(%zu, %zu) returned %p", alignment, size, block);
            memset(block, 1, size);
            free(block);
        }
    }
}

#ifdef PLANTED
int posix_memalign(void **place, size_t alignment, size_t size) {
    *place = memalign(alignment > 4096 ? 4096 : alignment, size);
    return *place ? 0 : ENOMEM;
}
#endif
