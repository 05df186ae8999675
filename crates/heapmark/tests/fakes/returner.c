/* Fakes no fault: gives the whole pages of each freed block back to the kernel, so that its next use pays for
   them again. */
#define _DEFAULT_SOURCE
#include "own.h"
#include <stdint.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

void free(void *block) {
    if (own_has(block)) {
        /* The page of the block's own head stays. */
        uintptr_t first = ((uintptr_t)block + PAGE - 1) / PAGE * PAGE;
        uintptr_t end = ((uintptr_t)block + own_size(block)) / PAGE * PAGE;
        if (end > first) madvise((void *)first, end - first, MADV_DONTNEED);
    }
    own_free(block);
}
