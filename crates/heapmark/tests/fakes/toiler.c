/* Fakes an allocator with a thread of its own, which is there before the program begins and gives memory back all the time. */
#include "own.h"
#include <pthread.h>
#include <sys/mman.h>

static void *toil(void *page) {
    while (madvise(page, 4096, MADV_DONTNEED) == 0) {}
    return NULL;
}

__attribute__((constructor)) static void begin(void) {
    pthread_t thread;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_create(&thread, NULL, toil, page);
}

void *malloc(size_t size) { return own_malloc(size); }
