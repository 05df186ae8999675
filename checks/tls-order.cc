/*
about = "thread_local objects and keys of a thread that ends may allocate and free, in each order"
group = "c++"
standing = "std"
source = "ISO C++17, [basic.stc.thread]; bun issue 38199, snmalloc multi_threadatexit"
why = "their destructors run before and after the thread cache of the allocator has gone"
*/
#include "harness/check.h"
#include <limits.h>
#include <memory>
#include <pthread.h>
#include <string>
#include <thread>
#include <vector>

static pthread_key_t key;

struct Late {
    std::vector<std::string> kept;
    ~Late() { kept.assign(50, std::string(200, 'x')); }
};
static thread_local Late before, after;

static void again(void *left) {
    if (*(char *)left > 1) pthread_setspecific(key, memset(malloc(100), *(char *)left - 1, 100));
    free(left);
}

CHECK {
    pthread_key_create(&key, again);
    for (int round = 0; round < 300; round++) {
        auto foreign = std::make_unique<std::string>(3000, 'y');
        std::thread([&] {
            if (round % 2) before.kept.emplace_back(100, 'z');
            pthread_setspecific(key, memset(malloc(100), PTHREAD_DESTRUCTOR_ITERATIONS, 100));
            foreign.reset();
            after.kept.emplace_back(100, 'z');
        }).join();
    }
}

#ifdef PLANTED
static __thread int frees;
void free(void *block) {
    // As a cache that is gone after some frees of the dying thread.
    if (block && ++frees == 40) __builtin_trap();
    __libc_free(block);
}
#endif
