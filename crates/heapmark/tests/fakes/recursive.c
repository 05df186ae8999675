/* Fakes no fault: an allocator with memory of its own that finds its pointers in its first free, by dlsym. Where that first
   free is one of dlsym's own, which words an error, it calls itself until the stack ends. */
#define _GNU_SOURCE
#include "own.h"
#include <dlfcn.h>

void free(void *block) {
    static void *found;
    if (!found) found = dlsym(RTLD_NEXT, "free");
    own_free(block);
}
