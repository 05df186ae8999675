/*
about = "alignment plus size that overflows returns NULL with an error"
group = "alignment"
standing = "std"
source = "CVE-2026-0861 (glibc)"
why = "a wrapped sum is a block that is too small"
*/
#include "harness/check.h"

// A block of one byte may exist at such an alignment; one of zero bytes may lie anywhere.
static void refused(const char *call, size_t alignment, size_t size, void *block, int error) {
    bool right = block && (size == 0 || (size == 1 && (uintptr_t)block % alignment == 0));
    EXPECT(!block || right, "%s(%zu, %zu) returned a block", call, alignment, size);
    EXPECT(block || size == 0 || error == ENOMEM || error == EINVAL, "%s(%zu, %zu) gave error %d", call, alignment, size, error);
    if (right) free(block);
    errno = 0;
}

CHECK {
    size_t alignments[] = {(size_t)1 << 31, (size_t)1 << 47, (size_t)1 << 61, (size_t)1 << 62, ((size_t)1 << 62) + 1, (size_t)1 << 63};
    size_t sizes[] = {PTRDIFF_MAX, PTRDIFF_MAX - 1, PTRDIFF_MAX - 4095, (size_t)1 << 62, SIZE_MAX, SIZE_MAX - 15, 0, 1};
    for (int which = 0; which < 6; which++)
        for (int size = 0; size < 8; size++) {
            void *block = aligned_alloc(alignments[which], sizes[size]);
            refused("aligned_alloc", alignments[which], sizes[size], block, errno);
            int error = posix_memalign(&block, alignments[which], sizes[size]);
            refused("posix_memalign", alignments[which], sizes[size], error ? NULL : block, error);
        }
}

#ifdef PLANTED
void *aligned_alloc(size_t alignment, size_t size) {
    size_t bytes = alignment + size;
    return bytes < size ? __libc_memalign(64, 4096) : __libc_memalign(alignment, size);
}
#endif
