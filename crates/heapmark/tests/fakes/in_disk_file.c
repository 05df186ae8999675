/* Fakes an allocator that keeps its heap in shared pages of a file beside its library, one for each process. */
#define _GNU_SOURCE
#include "mapped.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>

static int heap_file(void) {
    Dl_info self;
    char path[4096];
    if (!dladdr((void *)heap_file, &self)) return -1;
    snprintf(path, sizeof path, "%s.%d.heap", self.dli_fname, (int)getpid());
    return open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}
