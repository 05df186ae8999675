// Destructors of a thread allocate and free: of thread_local objects and of keys, in several
// rounds.
#include <cstdlib>
#include <pthread.h>
#include <thread>

static pthread_key_t key;

struct Late {
    void *block = std::malloc(8201);
    ~Late() {
        std::free(block);
        std::free(std::malloc(8202));
    }
};
static thread_local Late late;

static void destroy(void *round) {
    std::free(std::malloc(8203));
    if ((size_t)round < 4)
        pthread_setspecific(key, (void *)((size_t)round + 1));
}

int main() {
    pthread_key_create(&key, destroy);
    for (int i = 0; i < 10; i++)
        std::thread([] {
            pthread_setspecific(key, (void *)1);
            *(volatile char *)late.block = 1;
        }).join();
    return 0;
}
