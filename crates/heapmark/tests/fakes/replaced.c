/* Fakes a library that is replaced on disk while it is being loaded: by the file beside it, whose name ends in .new. */
#define _GNU_SOURCE
#include "own.h"
#include <dlfcn.h>
#include <stdio.h>

__attribute__((constructor)) static void replace(void) {
    Dl_info self;
    char other[4096];
    if (!dladdr((void *)replace, &self)) return;
    snprintf(other, sizeof other, "%s.new", self.dli_fname);
    rename(other, self.dli_fname);
}

void *malloc(size_t size) { return own_malloc(size); }
