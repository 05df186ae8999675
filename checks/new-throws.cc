/*
about = "operator new of a size that no memory can hold throws bad_alloc"
group = "c++"
standing = "std"
source = "ISO C++17, [new.delete.single], [new.delete.array]"
why = "programs do not test the pointer that new returns"
*/
#include "harness/check.h"
#include <new>

static void throws(const char *form, size_t size, void *(*call)(size_t)) {
    try {
        void *block = call(size);
        EXPECT(false, "%s(%zu) returned %p", form, size, block);
    } catch (const std::bad_alloc &) {
    }
}

CHECK {
    size_t sizes[] = {(size_t)1 << 48, PTRDIFF_MAX, (size_t)PTRDIFF_MAX + 1, SIZE_MAX - 4096, SIZE_MAX - 63};
    for (size_t size : sizes) {
        throws("new", size, [](size_t bytes) { return operator new(bytes); });
        throws("new[]", size, [](size_t bytes) { return operator new[](bytes); });
        throws("aligned new", size, [](size_t bytes) { return operator new(bytes, std::align_val_t(64)); });
        throws("aligned new[]", size, [](size_t bytes) { return operator new[](bytes, std::align_val_t(64)); });
    }
}

#ifdef PLANTED
void *operator new[](size_t size) { return __libc_malloc(size); }
#endif
