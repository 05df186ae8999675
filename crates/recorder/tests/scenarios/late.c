/* Loads a library whose constructor allocates, and leaves a mark. */
#include <dlfcn.h>
#include <stdlib.h>

int main(void) {
    void *library = dlopen("./plugin.so", RTLD_NOW);
    if (!library)
        return 1;
    void (*work)(void) = (void (*)(void))dlsym(library, "work");
    void (*mark)(const char *) = (void (*)(const char *))dlsym(RTLD_DEFAULT, "heapmark_mark");
    if (!work || !mark)
        return 2;
    mark("half way");
    work();
    return dlclose(library);
}
