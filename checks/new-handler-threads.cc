/*
about = "the new-handler of one thread is that of all threads"
group = "c++"
standing = "std"
source = "ISO C++17, [set.new.handler]"
why = "it is set at the start, and memory runs out in a worker"
*/
#include "harness/check.h"
#include "harness/handler.h"
#include <atomic>
#include <new>
#include <thread>

static std::atomic<int> calls;

static void fails() {
    try {
        EXPECT(!operator new((size_t)1 << 48), "new(2^48) returned a block");
    } catch (const std::bad_alloc &) {
    }
}

CHECK {
    std::set_new_handler([] { calls++, std::set_new_handler(nullptr); });
    std::thread(fails).join();
    if (calls == 0 && !knows_handler()) UNSUPPORTED("the library has a C++ library of its own inside, which does not know this new-handler");
    EXPECT(calls == 1, "a new-handler that another thread had set was called %d times", calls.load());
    // The worker has set none, which holds for this thread, too.
    fails();
    EXPECT(calls == 1, "a new-handler that another thread had removed was called");
}

#ifdef PLANTED
#include <new>
static __thread bool first_thread;
__attribute__((constructor)) static void start() { first_thread = true; }
void *operator new(size_t size) {
    void *block;
    while (!(block = __libc_malloc(size))) {
        if (!first_thread || !std::get_new_handler()) throw std::bad_alloc();
        std::get_new_handler()();
    }
    return block;
}
#endif
