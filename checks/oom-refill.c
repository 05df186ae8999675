/*
about = "what was freed at the limit of private writable memory can be allocated again"
group = "memory"
standing = "robust"
source = "POSIX.1-2024, malloc: nothing asks for it"
why = "a program that sheds load goes on with what it has freed"
seconds = 30
*/
#include "harness/check.h"
#include "harness/fill.h"
#include "harness/counted.h"

// A process for each size: what was of use to blocks of one need not be of use to others.
CHECK {
    const char *again = getenv("AGAIN");
    size_t size = again ? strtoul(again, NULL, 10) : 1 << 20, first, second;
    size_t held = counted("VmData:") >> 20;
    limit(RLIMIT_DATA, 256 << 20);
    drain(fill(size, &first));
    drain(fill(size, &second));
    if (first * size >= 1 << 30) UNSUPPORTED("1 GiB was granted under a limit of 256 MiB of private memory");
    if (first == 0) UNSUPPORTED("no block of %zu bytes under a limit of 256 MiB: it has %zu MiB of private memory before", size, held);
    EXPECT(second >= first / 2, "%zu blocks of %zu bytes at first, %zu after freeing them", first, size, second);
    if (size > 4096) {
        char next[24];
        sprintf(next, "%zu", size / 16);
        limit(RLIMIT_DATA, SIZE_MAX);
        AGAIN(next);
    }
}

#ifdef PLANTED
void *malloc(size_t size) {
    static bool failed;
    void *block = failed && size >= 64 << 10 ? NULL : __libc_malloc(size);
    failed |= !block;
    return block;
}
#endif
