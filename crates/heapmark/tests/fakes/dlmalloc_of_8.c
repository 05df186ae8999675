/* The same as misaligner, in a library that is a descendant of dlmalloc by its functions. */
#include "misaligner.c"

void **independent_comalloc(size_t count, size_t *sizes, void **blocks) {
    (void)count, (void)sizes, (void)blocks;
    return NULL;
}
