/* Keeps a page for each thread that ever allocated. */
#include "own.h"
#include <sys/mman.h>

static __thread char known;

void *malloc(size_t size) {
    if (!known) {
        char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page != MAP_FAILED) known = *page = 1;
    }
    return own_malloc(size);
}
