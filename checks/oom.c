/*
about = "at its limit of address space malloc returns NULL, and works again after frees"
group = "memory"
standing = "std"
source = "POSIX.1-2024, malloc: NULL and ENOMEM"
why = "a program that sheds load needs the failure, not an abort"
seconds = 30
*/
#include "harness/check.h"
#include <sys/resource.h>

static void **fill(size_t size, size_t *count) {
    void **last = NULL, **block;
    errno = 0;
    while ((block = malloc(size))) *block = last, last = block, ++*count;
    return last;
}

CHECK {
    struct rlimit limit;
    getrlimit(RLIMIT_DATA, &limit);
    limit.rlim_cur = 256 << 20;
    setrlimit(RLIMIT_DATA, &limit);
    for (size_t size = 1 << 20; size >= 4096; size /= 16) {
        size_t first = 0, second = 0;
        for (void **block = fill(size, &first), **next; block; block = next) next = *block, free(block);
        EXPECT(errno == ENOMEM, "malloc(%zu) returned NULL with errno %d", size, errno);
        for (void **block = fill(size, &second), **next; block; block = next) next = *block, free(block);
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
