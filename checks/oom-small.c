/*
about = "at a limit of address space malloc of small blocks returns NULL with ENOMEM"
group = "memory"
standing = "std"
source = "POSIX.1-2024, malloc: NULL and ENOMEM"
why = "containers and batch systems set RLIMIT_AS"
full = true
seconds = 30
*/
#include "harness/check.h"
#include "harness/fill.h"

// A process for each size: what was of use to blocks of one need not be of use to others.
CHECK {
    const char *again = getenv("AGAIN");
    size_t size = again ? strtoul(again, NULL, 10) : 1024, count;
    limit(RLIMIT_AS, counted("VmSize:") + (512ul << 20));
    errno = 0;
    void **blocks = fill(size, &count);
    int error = errno;
    drain(blocks);
    if (count * size >= 1 << 30) UNSUPPORTED("it has reserved so much address space before that the limit is out of reach");
    EXPECT(error == ENOMEM, "malloc(%zu) returned NULL with errno %d", size, error);
    NOTE("blocks of %zu bytes=%zu MiB", size, count * size >> 20);
    if (size > 64) {
        char next[24];
        sprintf(next, "%zu", size / 16);
        limit(RLIMIT_AS, SIZE_MAX);
        AGAIN(next);
    }
}

#ifdef PLANTED
void *malloc(size_t size) {
    void *block = __libc_malloc(size);
    if (!block) abort();
    return block;
}
#endif
