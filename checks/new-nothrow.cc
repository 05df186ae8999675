/*
about = "operator new with nothrow returns NULL for a size that no memory can hold, and throws nothing"
group = "c++"
standing = "std"
source = "ISO C++17, [new.delete.single]: the nothrow forms are noexcept"
why = "an exception out of a noexcept function ends the process"
*/
#include "harness/check.h"
#include <new>

CHECK {
    size_t sizes[] = {(size_t)1 << 48, PTRDIFF_MAX, (size_t)PTRDIFF_MAX + 1, SIZE_MAX - 4096, SIZE_MAX - 63};
    for (size_t size : sizes) {
        EXPECT(!operator new(size, std::nothrow), "new(%zu, nothrow) returned a block", size);
        EXPECT(!operator new[](size, std::nothrow), "new[](%zu, nothrow) returned a block", size);
        std::align_val_t alignment{64};
        EXPECT(!operator new(size, alignment, std::nothrow), "new(%zu, 64, nothrow) returned a block", size);
        EXPECT(!operator new[](size, alignment, std::nothrow), "new[](%zu, 64, nothrow) returned a block", size);
    }
    void *block = operator new(100, std::nothrow);
    EXPECT(block, "new(100, nothrow) returned NULL");
    operator delete(block, std::nothrow);
}

#ifdef PLANTED
#include <new>
void *operator new(size_t size, const std::nothrow_t &) noexcept { return operator new(size); }
#endif
