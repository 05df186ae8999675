/* Opens a library that prefers its own libraries' functions: it allocates for the program, and
   frees the program's blocks, unseen. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

int main(void) {
    void *library = dlopen("./deep.so", RTLD_NOW | RTLD_DEEPBIND);
    if (!library)
        return 1;
    void *(*give)(size_t) = (void *(*)(size_t))dlsym(library, "give");
    void (*take)(void *) = (void (*)(void *))dlsym(library, "take");
    if (!give || !take)
        return 2;
    for (int i = 0; i < 1000; i++)
        free(give(9101));
    for (int i = 0; i < 1000; i++)
        take(malloc(9102));
    return 0;
}
