/*
about = "free keeps errno also if the kernel refuses to take memory back"
group = "errno"
standing = "std"
source = "POSIX.1-2024, free"
why = "munmap fails at the limit of mappings, when a program is in trouble already"
*/
#include "harness/check.h"
#include "harness/forbid.h"

CHECK {
    char *blocks[31];
    for (int which = 0; which < 31; which++) {
        blocks[which] = malloc((size_t)1 << which);
        if (!blocks[which]) UNSUPPORTED("malloc(2^%d) failed", which);
        blocks[which][0] = 1;
    }
    forbid(SYS_munmap, ENOMEM);
    forbid(SYS_madvise, ENOMEM);
    for (int which = 0; which < 31; which++) {
        errno = 3;
        free(blocks[which]);
        EXPECT(errno == 3, "free of 2^%d bytes set errno to %d as munmap and madvise failed", which, errno);
    }
    EXPECT(malloc(100) && malloc(100000), "malloc fails after munmap and madvise have failed");
}

#ifdef PLANTED
#include <sys/mman.h>
static char *large;
void *malloc(size_t size) {
    if (size != 1 << 24) return __libc_malloc(size);
    return large = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
void free(void *block) {
    if (block && block == large) munmap(block, 1 << 24);
    else __libc_free(block);
}
#endif
