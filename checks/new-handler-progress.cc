/*
about = "operator new succeeds once its new-handler has made room"
group = "c++"
standing = "std"
source = "ISO C++17, [new.handler]/2: make more storage available and return"
why = "a reserve that the handler frees is of no use if new does not try again"
*/
#include "harness/check.h"
#include "harness/handler.h"
#include <new>
#include <sys/resource.h>

static int calls;

static void limit(rlim_t bytes) {
    struct rlimit now;
    getrlimit(RLIMIT_DATA, &now);
    now.rlim_cur = bytes < now.rlim_max ? bytes : now.rlim_max;
    setrlimit(RLIMIT_DATA, &now);
}

CHECK {
    free(malloc(1));
    limit(256 << 20);
    std::set_new_handler([] { calls++, limit(RLIM_INFINITY); });
    try {
        void *block = operator new(1 << 30);
        if (!calls) UNSUPPORTED("1 GiB was granted under a limit of 256 MiB of private memory");
        EXPECT(block && calls == 1, "the new-handler was called %d times", calls);
        operator delete(block);
    } catch (const std::bad_alloc &) {
        if (!calls && !knows_handler()) UNSUPPORTED("the library has a C++ library of its own inside, which does not know this new-handler");
        EXPECT(false, "new threw bad_alloc after the new-handler had made room, and %d calls", calls);
    }
}

#ifdef PLANTED
#include <new>
void *operator new(size_t size) {
    void *block = __libc_malloc(size);
    if (block) return block;
    if (std::get_new_handler()) std::get_new_handler()();
    throw std::bad_alloc();
}
#endif
