/*
about = "at a limit of address space malloc of large blocks returns NULL with ENOMEM"
group = "memory"
standing = "std"
source = "POSIX.1-2024, malloc: NULL and ENOMEM"
why = "containers and batch systems set RLIMIT_AS"
seconds = 30
*/
#include "harness/check.h"
#include "harness/fill.h"
#include "harness/counted.h"
#include "harness/address_space.h"

CHECK {
    fill_address_space(1 << 20, 64 << 10);
}

#ifdef PLANTED
void *malloc(size_t size) {
    void *block = __libc_malloc(size);
    if (!block) abort();
    return block;
}
#endif
