/*
about = "at its limit of address space malloc of small blocks returns NULL, and works again after frees"
group = "memory"
standing = "std"
source = "POSIX.1-2024, malloc: NULL and ENOMEM"
why = "containers and batch systems set RLIMIT_AS"
full = true
seconds = 30
*/
#include "harness/check.h"
#include "harness/fill.h"

CHECK {
    size_t sizes[] = {64, 500}, mapped = 0;
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, "VmSize:", 7) == 0) mapped = strtoul(line + 7, NULL, 10) << 10;
    if (!mapped) UNSUPPORTED("no /proc");
    fclose(status);
    limit(RLIMIT_AS, mapped + (512ul << 20));
    for (int which = 0; which < 2; which++) {
        size_t first, second;
        errno = 0;
        void **blocks = fill(sizes[which], &first);
        int error = errno;
        drain(blocks);
        if (first * sizes[which] >= 1 << 30) UNSUPPORTED("it has reserved so much address space before that the limit is out of reach");
        EXPECT(error == ENOMEM, "malloc(%zu) returned NULL with errno %d", sizes[which], error);
        drain(fill(sizes[which], &second));
        EXPECT(first && second >= first / 2, "%zu blocks of %zu bytes at first, %zu after freeing them", first, sizes[which], second);
        NOTE("blocks of %zu bytes=%zu MiB", sizes[which], first * sizes[which] >> 20);
    }
}

#ifdef PLANTED
void *malloc(size_t size) {
    void *block = __libc_malloc(size);
    if (!block) abort();
    return block;
}
#endif
