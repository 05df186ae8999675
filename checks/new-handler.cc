/*
about = "operator new calls the new-handler until that gives up"
group = "c++"
standing = "std"
source = "ISO C++17, [new.delete.single]/4, [new.handler]"
why = "programs free caches there, or report before they end"
*/
#include "harness/check.h"
#include "harness/handler.h"
#include <new>

static int calls;

static void handler() {
    if (++calls == 3) std::set_new_handler(nullptr);
}

static void asks(const char *form, void *(*call)(size_t)) {
    calls = 0;
    std::set_new_handler(handler);
    try {
        EXPECT(!call((size_t)1 << 48), "%s(2^48) returned a block", form);
    } catch (const std::bad_alloc &) {
    }
    if (calls == 0 && !knows_handler()) UNSUPPORTED("the library has a C++ library of its own inside, which does not know this new-handler");
    EXPECT(calls == 3, "%s(2^48) called the new-handler %d times instead of 3", form, calls);
}

CHECK {
    asks("new", [](size_t size) { return operator new(size); });
    asks("new[]", [](size_t size) { return operator new[](size); });
    asks("new nothrow", [](size_t size) { return operator new(size, std::nothrow); });
    asks("aligned new", [](size_t size) { return operator new(size, std::align_val_t(64)); });
}

#ifdef PLANTED
#include <new>
void *operator new(size_t size) {
    void *block = __libc_malloc(size);
    if (!block) throw std::bad_alloc();
    return block;
}
#endif
