/* Fakes no fault: an allocator with memory of its own that sets libc's allocator up, too. */
#include "own.h"
#include <malloc.h>

__attribute__((constructor)) static void tune(void) {
    mallopt(M_MMAP_THRESHOLD, 4096);
    mallopt(M_PERTURB, 0x5a);
}

void *malloc(size_t size) { return own_malloc(size); }
