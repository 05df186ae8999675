/*
about = "blocks can be allocated before the first constructor, and freed later"
group = "program"
standing = "robust"
source = "the dynamic linker and the constructors of other libraries allocate first"
why = "the constructor of the allocator itself may not have run"
*/
#include "harness/check.h"

static unsigned char *early[200];

static void first(int words, char **word) {
    if (words > 1 && strcmp(word[1], "early-alloc") != 0) return; // another check of this program
    for (int which = 0; which < 200; which++)
        early[which] = memset(which % 3 ? malloc(16 + which * which) : memalign(64, 16 + which * which), which, 16);
    for (int which = 0; which < 200; which += 2) free(early[which]), early[which] = NULL;
}

FIRST(first);

CHECK {
    for (int which = 1; which < 200; which += 2) {
        EXPECT(early[which] && early[which][15] == which, "a block that was made before the first constructor has changed");
        early[which] = realloc(early[which], 50000);
        EXPECT(early[which][15] == which, "realloc of such a block changed it");
        free(early[which]);
    }
}

#ifdef PLANTED
static bool ready;
__attribute__((constructor)) static void start(void) { ready = true; }
void *malloc(size_t size) {
    // The dynamic linker itself takes few bytes.
    if (!ready && size == 16 + 199 * 199) abort();
    return __libc_malloc(size);
}
#endif
