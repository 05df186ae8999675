/* Needs 64 GiB of address space to start, none of which it may write to. */
#include "own.h"
#include <stdlib.h>
#include <sys/mman.h>

__attribute__((constructor)) static void reserve(void) {
    if (mmap(0, (size_t)64 << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED) abort();
}
