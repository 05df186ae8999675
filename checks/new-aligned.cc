/*
about = "operator new returns blocks of the alignment that is asked for"
group = "c++"
standing = "std"
source = "ISO C++17, [new.delete.single], [basic.stc.dynamic.allocation]"
why = "types with alignas, and vectors of them"
*/
#include "harness/check.h"
#include <new>

static void aligned(const char *form, size_t alignment, size_t size, void *block) {
    EXPECT(block && (uintptr_t)block % alignment == 0, "%s(%zu, %zu) returned %p", form, size, alignment, block);
    memset(block, 1, size);
}

CHECK {
    for (size_t alignment = 1; alignment <= 1 << 20; alignment *= 2) {
        std::align_val_t value{alignment};
        for (size_t size = 1; size <= 100000; size = size * 5 / 2 + 1) {
            void *blocks[] = {operator new(size, value), operator new[](size, value),
                              operator new(size, value, std::nothrow), operator new[](size, value, std::nothrow)};
            for (void *block : blocks) aligned("new", alignment, size, block);
            operator delete(blocks[0], value);
            operator delete[](blocks[1], value);
            operator delete(blocks[2], size, value);
            operator delete[](blocks[3], size, value);
        }
    }
}

#ifdef PLANTED
#include <new>
void *operator new[](size_t size, std::align_val_t alignment) {
    return __libc_memalign((size_t)alignment > 4096 ? 4096 : (size_t)alignment, size);
}
#endif
