/*
about = "which wrong sizes sized delete and the sized forms of free accept"
group = "mismatch"
source = "CWE-131; hardened_malloc delete_type_size_mismatch; C23 free_sized"
why = "a size that is trusted puts the block into another list"
ends = "values"
trials = 1
*/
#include "../harness/misuse.h"
#include <dlfcn.h>

MISUSE {
    char *(*make)(size_t) = operator_of("_Znwm");
    void (*drop)(void *, size_t) = operator_of("_ZdlPvm");
    size_t sizes[] = {size, size - 1, size + 1, size + 16, size / 2, size * 2, 0, PTRDIFF_MAX};
    static const char *names[] = {"its size", "-1", "+1", "+16", "half", "double", "0", "PTRDIFF_MAX"};
    void (*sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    void (*aligned)(void *, size_t, size_t) = (void (*)(void *, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
    char *block = make(size), *plain = malloc(size), *at_64 = memalign(64, size);
    for (int which = 0; which < 8; which++) {
        const char *end = apart();
        if (!end) drop(block, wrong ? sizes[which] : size), leave();
        else NOTE("%s=%s", names[which], end);
        if (sized && !(end = apart())) sized(plain, wrong ? sizes[which] : size), leave();
        else if (sized) NOTE("free_sized %s=%s", names[which], end);
    }
    for (size_t alignment = 16; alignment <= 4096 && aligned; alignment *= 4) {
        const char *end = apart();
        if (!end) aligned(at_64, wrong ? alignment : 64, size), leave();
        else NOTE("free_aligned_sized 64 as %zu=%s", alignment, end);
    }
}
