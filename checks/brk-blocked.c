/*
about = "malloc works if the break cannot move"
group = "memory"
standing = "robust"
source = "glibc tst-malloc-alternate-path, musl libc-test; brk(2)"
why = "another mapping, or a filter of system calls, may be in the way"
*/
#include "harness/check.h"
#include "harness/traffic.h"
#include <sys/mman.h>

CHECK {
    size_t page = getpagesize();
    if (sbrk(page) == (void *)-1) UNSUPPORTED("the break is blocked already");
    char *end = (char *)(((uintptr_t)sbrk(0) + page - 1) & -page);
    void *blocked = mmap(end, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (blocked == MAP_FAILED) UNSUPPORTED("the page above the break is taken");
    if (sbrk(16 << 20) != (void *)-1) UNSUPPORTED("the break moves all the same");
    EXPECT(traffic() == 0, "malloc failed");
}

#ifdef PLANTED
void *malloc(size_t size) {
    return size >= 1 << 20 ? (void *)((intptr_t)sbrk(size) == -1 ? NULL : sbrk(0)) : __libc_malloc(size);
}
#endif
