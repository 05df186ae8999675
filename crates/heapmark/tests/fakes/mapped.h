/* An allocator whose whole heap is one shared mapping of a file, whose descriptor `heap_file` gives. Sizes are powers of two, and what is
   freed is used again. */
#include "forward.h"
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HEAP_BYTES (1ul << 30)

static int heap_file(void);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *next, *limit;
static void *spare[64];

void *malloc(size_t size) {
    int class = 64 - __builtin_clzl((size + 16 + 15) | 31);
    pthread_mutex_lock(&lock);
    if (!next) {
        int file = heap_file();
        if (file < 0 || ftruncate(file, HEAP_BYTES)) _exit(9);
        next = mmap(NULL, HEAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (next == MAP_FAILED) _exit(9);
        limit = next + HEAP_BYTES;
        close(file);
    }
    char *block = spare[class];
    if (block) {
        memcpy(&spare[class], block, sizeof(void *));
    } else if ((size_t)(limit - next) > 1ul << class) {
        block = next + 16;
        ((size_t *)block)[-1] = class;
        next += 1ul << class;
    }
    pthread_mutex_unlock(&lock);
    return block;
}

void free(void *block) {
    if (!block) return;
    size_t class = ((size_t *)block)[-1];
    pthread_mutex_lock(&lock);
    memcpy(block, &spare[class], sizeof(void *));
    spare[class] = block;
    pthread_mutex_unlock(&lock);
}

void *calloc(size_t count, size_t size) {
    void *block = malloc(count * size);
    return block ? memset(block, 0, count * size) : NULL;
}

void *realloc(void *old, size_t size) {
    void *block = malloc(size);
    if (old && block) {
        size_t room = (1ul << ((size_t *)old)[-1]) - 16;
        memcpy(block, old, room < size ? room : size);
        free(old);
    }
    return block;
}
