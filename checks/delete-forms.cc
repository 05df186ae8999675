/*
about = "each form of operator delete takes the blocks of its form of new"
group = "c++"
standing = "std"
source = "ISO C++17, [new.delete.single], [new.delete.array]"
why = "compilers choose the form: sized, aligned, both or neither"
*/
#include "harness/check.h"
#include <new>

struct Wide {
    alignas(128) unsigned char bytes[256];
    ~Wide() { bytes[0] = 0; }
};

CHECK {
    std::align_val_t wide{128};
    operator delete(nullptr), operator delete[](nullptr), operator delete(nullptr, 100), operator delete(nullptr, 100, wide);
    EXPECT(operator new(100), "new(100) returned NULL after deletes of NULL");
    for (size_t size = 1; size <= 1000000; size = size * 4 / 3 + 1) {
        operator delete(operator new(size));
        operator delete(operator new(size), size);
        operator delete(operator new(size, wide), wide);
        operator delete(operator new(size, wide), size, wide);
        operator delete(operator new(size, std::nothrow), std::nothrow);
        operator delete[](operator new[](size));
        operator delete[](operator new[](size), size);
        operator delete[](operator new[](size, wide), size, wide);
        operator delete[](operator new[](size, wide, std::nothrow), wide, std::nothrow);
        Wide *volatile objects = new Wide[1 + size / 256];
        EXPECT((uintptr_t)objects % 128 == 0, "new of objects that are aligned to 128 bytes returned %p", (void *)objects);
        delete[] objects;
    }
}

#ifdef PLANTED
#include <new>
// Looks for a header that only the plain form makes.
void operator delete(void *block, size_t, std::align_val_t) noexcept { __libc_free((char *)block - 16); }
#endif
