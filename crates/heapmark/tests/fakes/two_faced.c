/* Fakes a copy that is not what it was copied from: slow wherever it lies in a folder of copies. */
#define _GNU_SOURCE
#include "own.h"
#include <dlfcn.h>
#include <string.h>

static int steps;

__attribute__((constructor)) static void look(void) {
    Dl_info self;
    if (dladdr((void *)look, &self) && strstr(self.dli_fname, "/copies/")) steps = 1000;
}

void *malloc(size_t size) {
    for (volatile int i = 0; i < steps; i++) {
    }
    return own_malloc(size);
}
