/*
about = "a program that replaces only operator new(size_t) and delete(void *) never meets blocks of two heaps"
group = "c++"
standing = "std"
source = "ISO C++17, [new.delete.single], [new.delete.array]: the other forms call these two"
why = "programs replace the two to count, to pool or to trace, and delete whatever any form of new gave them"
*/
#include "harness/check.h"
#include <dlfcn.h>
#include <new>

// While the check runs, the two serve from memory of their own; otherwise they hand on, as the harness and the library load.
static bool replaced;
static int foreign;
alignas(16) static char pool[1 << 16];
static size_t taken;

void *operator new(size_t size) {
    if (!replaced) return ((void *(*)(size_t))dlsym(RTLD_NEXT, "_Znwm"))(size);
    char *block = pool + taken;
    taken += (size + 15) / 16 * 16;
    return block;
}

void operator delete(void *block) noexcept {
    if (!replaced) return ((void (*)(void *))dlsym(RTLD_NEXT, "_ZdlPv"))(block);
    foreign += block < pool || block >= pool + sizeof pool;
}

CHECK {
    replaced = true;
    operator delete(operator new(24, std::nothrow));
    EXPECT(!foreign, "delete(void *) of the program gets a block of new(nothrow) that its new(size_t) did not make");
    foreign = 0, operator delete[](operator new[](24));
    EXPECT(!foreign, "delete(void *) of the program gets a block of new[] that its new(size_t) did not make");
    foreign = 0, operator delete[](operator new[](24, std::nothrow));
    EXPECT(!foreign, "delete(void *) of the program gets a block of new[](nothrow) that its new(size_t) did not make");
    // As `delete` of a complete type does. A library that takes the program's block may end here.
    operator delete(operator new(24), (size_t)24);
    replaced = false;
}

#ifdef PLANTED
void *operator new(size_t size, const std::nothrow_t &) noexcept { return malloc(size); }
#endif
