/*
about = "operator new whose alignment plus size overflows throws bad_alloc"
group = "c++"
standing = "std"
source = "CVE-2026-0861 (glibc), for the aligned forms of ISO C++17"
why = "a wrapped sum is a block that is too small"
*/
#include "harness/check.h"
#include <new>

CHECK {
    size_t alignments[] = {(size_t)1 << 31, (size_t)1 << 47, (size_t)1 << 61, (size_t)1 << 62, ((size_t)1 << 62) + 1, (size_t)1 << 63};
    size_t sizes[] = {PTRDIFF_MAX, PTRDIFF_MAX - 1, PTRDIFF_MAX - 4095, (size_t)1 << 62, (size_t)1 << 63};
    for (size_t alignment : alignments) {
        for (size_t size : sizes) {
            try {
                void *block = operator new(size, std::align_val_t(alignment));
                EXPECT(false, "new(%zu, %zu) returned %p", size, alignment, block);
            } catch (const std::bad_alloc &) {
            }
            void *block = operator new(size, std::align_val_t(alignment), std::nothrow);
            EXPECT(!block, "new(%zu, %zu, nothrow) returned a block", size, alignment);
        }
    }
    // Up to version 12 at least, libstdc++ itself rounds this up to 0: a value, since it is the fault of no allocator.
    void *block = operator new(SIZE_MAX, std::align_val_t(64), std::nothrow);
    NOTE("new(SIZE_MAX, 64, nothrow)=%s", block ? "a block" : "NULL");
}

#ifdef PLANTED
#include <new>
void *operator new(size_t size, std::align_val_t alignment) {
    void *block = size + (size_t)alignment < size ? __libc_malloc(4096) : __libc_memalign((size_t)alignment, size);
    if (!block) throw std::bad_alloc();
    return block;
}
#endif
