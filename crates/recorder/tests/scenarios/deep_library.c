/* Is opened with RTLD_DEEPBIND. */
#include <stdlib.h>

void *give(size_t size) {
    return malloc(size);
}

void take(void *block) {
    free(block);
}
