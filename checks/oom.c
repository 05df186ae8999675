/*
about = "at its limit of private writable memory malloc returns NULL, and works again after frees"
group = "memory"
standing = "std"
source = "POSIX.1-2024, malloc: NULL and ENOMEM"
why = "a program that sheds load needs the failure, not an abort"
seconds = 30
*/
#include "harness/check.h"
#include "harness/fill.h"

CHECK {
    limit(RLIMIT_DATA, 256 << 20);
    for (size_t size = 1 << 20; size >= 4096; size /= 16) {
        size_t first, second;
        errno = 0;
        void **blocks = fill(size, &first);
        int error = errno;
        drain(blocks);
        if (first * size >= 1 << 30) UNSUPPORTED("1 GiB was granted under a limit of 256 MiB of private memory");
        EXPECT(error == ENOMEM, "malloc(%zu) returned NULL with errno %d", size, error);
        drain(fill(size, &second));
        EXPECT(first && second >= first / 2, "%zu blocks of %zu bytes at first, %zu after freeing them", first, size, second);
    }
}

#ifdef PLANTED
void *malloc(size_t size) {
    void *block = __libc_malloc(size);
    if (!block) __builtin_trap();
    return block;
}
#endif
