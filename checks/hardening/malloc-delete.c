/*
about = "a block of malloc is deleted by operator delete"
group = "mismatch"
source = "CWE-762"
why = "a library that keeps the kind of a block can tell"
*/
#include "../harness/misuse.h"
#include <dlfcn.h>

static void *operator_of(const char *name) {
    void *libcxx = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL), *found = dlsym(RTLD_DEFAULT, name);
    if (!libcxx || !found) UNSUPPORTED("no %s", name);
    return found;
}

MISUSE {
    void (*drop)(void *) = operator_of("_ZdlPv");
    char *block = malloc(size);
    misuse();
    if (wrong) drop(block);
    if (!wrong) free(block);
}
