/*
about = "blocks are aligned for every object that fits into them"
group = "alignment"
standing = "std"
source = "ISO C17, 7.22.3 (fundamental alignment); C23 7.24.3; WG14 N2293"
why = "compilers use instructions that fault on less"
*/
#include "harness/check.h"

CHECK {
    size_t worst = 16;
    for (size_t size = 1; size <= 20000; size++) {
        size_t needed = 1;
        while (needed < 16 && needed * 2 <= size) needed *= 2;
        char *blocks[8];
        for (int which = 0; which < 8; which++) {
            blocks[which] = malloc(size);
            size_t has = (uintptr_t)blocks[which] & -(uintptr_t)blocks[which];
            EXPECT(has >= needed, "malloc(%zu) is aligned to %zu bytes", size, has);
            if (has < worst) worst = has;
        }
        for (int which = 0; which < 8; which++) free(blocks[which]);
    }
    NOTE("smallest alignment=%zu", worst);
}

#ifdef PLANTED
void *malloc(size_t size) {
    char *block = __libc_malloc(size + 24);
    return block ? block + 8 : NULL;
}
void free(void *block) {
    __libc_free(block ? (char *)block - 8 : NULL);
}
#endif
