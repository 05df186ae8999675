/*
about = "a plain object is deleted as one that is aligned to 4 KiB"
group = "mismatch"
source = "CWE-762"
why = "an alignment that is trusted leads to another header"
*/
#include "../harness/misuse.h"
#include <dlfcn.h>

static void *operator_of(const char *name) {
    void *libcxx = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL), *found = dlsym(RTLD_DEFAULT, name);
    if (!libcxx || !found) UNSUPPORTED("no %s", name);
    return found;
}

MISUSE {
    char *(*make)(size_t) = operator_of("_Znwm");
    void (*drop)(void *) = operator_of("_ZdlPv");
    void (*drop_aligned)(void *, size_t) = operator_of("_ZdlPvSt11align_val_t");
    char *block = make(size);
    misuse();
    if (wrong) drop_aligned(block, 4096);
    if (!wrong) drop(block);
}
