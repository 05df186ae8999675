/*
about = "which object serves the old names of the family"
group = "program"
standing = "observe"
source = "glibc before 2.26: cfree; the private names __libc_malloc and __libc_memalign"
why = "old binaries and other interposers call them, beside the names of today"
*/
#include "harness/check.h"
#include <dlfcn.h>

static const char *file(const char *name) {
    Dl_info where;
    void *function = dlsym(RTLD_DEFAULT, name);
    if (!function || !dladdr(function, &where)) return "absent";
    const char *slash = strrchr(where.dli_fname, '/');
    return slash ? slash + 1 : where.dli_fname;
}

CHECK {
    const char *names[] = {"cfree", "__libc_malloc", "__libc_calloc", "__libc_realloc", "__libc_memalign", "__libc_free",
                           "__posix_memalign", "reallocf", "malloc_size", "malloc_good_size", "_msize"};
    NOTE("malloc=%s", file("malloc"));
    for (size_t which = 0; which < sizeof names / sizeof *names; which++) NOTE("%s=%s", names[which], file(names[which]));
}

#ifdef PLANTED

#endif
