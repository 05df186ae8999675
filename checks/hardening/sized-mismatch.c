/*
about = "which wrong sizes sized delete accepts"
group = "mismatch"
source = "CWE-131; hardened_malloc delete_type_size_mismatch; C23 free_sized"
why = "a size that is trusted puts the block into another list"
ends = "values"
trials = 1
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
    size_t sizes[] = {size, size - 1, size + 1, size + 16, size / 2, size * 2, 0, PTRDIFF_MAX};
    static const char *names[] = {"its size", "-1", "+1", "+16", "half", "double", "0", "PTRDIFF_MAX"};
    char *block = make(size);
    for (int which = 0; which < 8; which++) {
        const char *end = apart();
        if (!end) drop(block, sizes[which]), leave();
        else NOTE("%s=%s", names[which], end);
    }
}
