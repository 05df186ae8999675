/*
about = "at the limit of mappings free keeps errno, and small blocks are still to be had"
group = "memory"
standing = "robust"
source = "vm.max_map_count, 65530 by default; POSIX.1-2024, free"
why = "to unmap the middle of a mapping needs one more"
*/
#include "harness/check.h"
#include <sys/mman.h>

CHECK {
    char *large[9], *small[1000];
    for (int which = 0; which < 9; which++) memset(large[which] = malloc(4 << 20), 1, 4096);
    for (int which = 0; which < 1000; which++) small[which] = malloc(100);
    for (int which = 0; which < 1000; which++) free(small[which]);
    int count = 0;
    // Each second page may be read: neighbours are mappings of their own.
    size_t page = getpagesize();
    char *area = mmap(NULL, 400000 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    while (area != MAP_FAILED && count < 199999 && mprotect(area + count * 2 * page, page, PROT_READ) == 0) count++;
    if (count == 199999 || area == MAP_FAILED) UNSUPPORTED("more than 400000 mappings are allowed");
    errno = 3;
    free(large[4]);
    EXPECT(errno == 3, "free at the limit of mappings set errno to %d", errno);
    for (int which = 0; which < 1000; which++) EXPECT(small[which] = malloc(100), "malloc(100) failed at the limit of mappings");
    munmap(area, 400000 * page);
    EXPECT(malloc(4 << 20), "malloc(4 MiB) fails, although mappings are free again");
}

#ifdef PLANTED
#include <sys/mman.h>
static char *area, *middle;
void *malloc(size_t size) {
    if (size != 4 << 20) return __libc_malloc(size);
    if (!area) area = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return middle = middle ? middle + (4 << 20) : area;
}
void free(void *block) {
    if (!area || (char *)block < area || (char *)block > middle) __libc_free(block);
    else munmap(block, 4 << 20);
}
#endif
