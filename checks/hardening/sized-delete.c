/*
about = "an object is deleted with twice its size"
group = "mismatch"
source = "CWE-131; mimalloc, snmalloc and hardened_malloc can check it"
why = "a size that is trusted puts the block into the list of another class"
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
    void (*drop)(void *, size_t) = operator_of("_ZdlPvm");
    char *block = make(size);
    misuse();
    if (wrong) drop(block, size * 2);
    if (!wrong) drop(block, size);
}
