/*
about = "at a limit of private writable memory malloc returns NULL with ENOMEM"
group = "memory"
standing = "std"
source = "POSIX.1-2024, malloc: NULL and ENOMEM"
why = "a program that sheds load needs the failure, not an abort"
seconds = 30
*/
#include "harness/check.h"
#include "harness/fill.h"
#include "harness/counted.h"

// A process for each size: what was of use to blocks of one need not be of use to others.
CHECK {
    const char *again = getenv("AGAIN");
    size_t size = again ? strtoul(again, NULL, 10) : 1 << 20, count;
    size_t held = counted("VmData:") >> 20;
    limit(RLIMIT_DATA, 256 << 20);
    errno = 0;
    void **blocks = fill(size, &count);
    int error = errno;
    drain(blocks);
    if (count * size >= 1 << 30) UNSUPPORTED("1 GiB was granted under a limit of 256 MiB of private memory");
    if (count == 0 && held >= 256) UNSUPPORTED("it has %zu MiB of private memory before, more than the limit of 256 MiB", held);
    EXPECT(error == ENOMEM, "malloc(%zu) returned NULL with errno %d", size, error);
    if (size > 4096) {
        char next[24];
        sprintf(next, "%zu", size / 16);
        limit(RLIMIT_DATA, SIZE_MAX);
        AGAIN(next);
    }
}

#ifdef PLANTED
void *malloc(size_t size) {
    void *block = __libc_malloc(size);
    if (!block) __builtin_trap();
    return block;
}
#endif
