/* Frees what was allocated before the recorder had found any allocator, by functions that the C
   library may not have, and lets a block of that grow. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    void **early = dlsym(RTLD_DEFAULT, "early");
    void (*free_sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    void (*free_aligned_sized)(void *, size_t, size_t) =
        (void (*)(void *, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
    if (!early || !early[0] || !early[1] || !early[2] || !free_sized || !free_aligned_sized)
        return 1;
    free_sized(early[0], 100);
    free_aligned_sized(early[1], 16, 100);
    char *grown = realloc(early[2], 1 << 20);
    if (!grown || grown[0] != 7)
        return 2;
    free(grown);
    puts("freed");
    return 0;
}
