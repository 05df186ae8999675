/*
about = "whether the library tells the bounds of an object"
group = "overflow"
source = "hardened_malloc malloc_object_size; snmalloc __malloc_last_byte_pointer; IsoAlloc iso_verify_zones"
why = "a copy can be checked against them"
ends = "values"
trials = 1
sizes = [4000]
*/
#include "../harness/misuse.h"
#include <dlfcn.h>

MISUSE {
    static const char *names[] = {"malloc_object_size", "__malloc_last_byte_pointer", "iso_verify_zones"};
    char *block = take(size);
    size_t (*bounds)(const void *) = dlsym(RTLD_DEFAULT, names[0]);
    for (int which = 0; which < 3; which++)
        NOTE("%s=%s", names[which], dlsym(RTLD_DEFAULT, names[which]) ? "yes" : "no");
    if (bounds) NOTE("malloc_object_size of the middle=%zu", bounds(block + size / 2));
}
