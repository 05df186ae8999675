/*
about = "a realloc that fails keeps the block and its contents"
group = "contents"
standing = "std"
source = "ISO C17, 7.22.3.5"
why = "a program that handles the failure goes on with the old block"
*/
#include "harness/check.h"

CHECK {
    for (size_t size = 1; size <= 4 << 20; size *= 3) {
        unsigned char *block = malloc(size);
        memset(block, (int)size | 1, size);
        EXPECT(!realloc(block, PTRDIFF_MAX), "realloc(%zu to PTRDIFF_MAX) returned a block", size);
        for (size_t place = 0; place < size; place++)
            if (block[place] != (unsigned char)(size | 1)) {
                EXPECT(false, "realloc of %zu bytes failed and changed byte %zu", size, place);
                break;
            }
        free(block);
    }
}

#ifdef PLANTED
void *realloc(void *block, size_t size) {
    if (block && size == PTRDIFF_MAX) *(char *)block = 0;
    return __libc_realloc(block, size);
}
#endif
