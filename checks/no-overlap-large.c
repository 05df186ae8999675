/*
about = "large blocks share no memory, neither with each other nor within themselves"
group = "contents"
standing = "std"
source = "ISO C17, 7.22.3"
why = "the tricks of a large block are those of page tables: each page must be its own"
*/
#include "harness/check.h"

CHECK {
    static const size_t mib[] = {9, 9, 12, 20, 33};
    uint64_t *blocks[5];
    for (uint64_t which = 0; which < 5; which++) {
        blocks[which] = malloc(mib[which] << 20);
        if (!blocks[which]) UNSUPPORTED("malloc has no %zu MiB", mib[which]);
        for (uint64_t word = 0; word < mib[which] << 17; word += 512) blocks[which][word] = which << 32 | word;
    }
    for (uint64_t which = 0; which < 5; which++) {
        for (uint64_t word = 0; word < mib[which] << 17; word += 512)
            if (blocks[which][word] != (which << 32 | word)) {
                EXPECT(false, "byte %zu of a block of %zu MiB was changed by a write to another page", (size_t)word * 8, mib[which]);
                break;
            }
        free(blocks[which]);
    }
}

#ifdef PLANTED
#include <sys/mman.h>
enum { WINDOW = 4 << 20 };
void *malloc(size_t size) {
    static int file;
    if (size <= 8 << 20) return __libc_malloc(size);
    if (!file) file = memfd_create("window", 0), (void)!ftruncate(file, WINDOW);
    char *block = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t at = 0; at < size; at += WINDOW)
        mmap(block + at, size - at < WINDOW ? size - at : WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
    return block;
}
void free(void *block) { (void)block; }
#endif
