/* Every function of C's family, each once and with arguments of its own. */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

int main(void) {
    void *block = malloc(5001), *other;
    block = realloc(block, 5002);
    block = reallocarray(block, 3, 1701);
    if (malloc_usable_size(block) < 5103)
        return 1;
    free(block);
    free(calloc(7, 701));
    free(realloc(NULL, 5003));
    other = realloc(malloc(5004), 0); /* frees, and returns NULL */
    if (other)
        return 2;
    if (posix_memalign(&other, 64, 5005) || (size_t)other % 64)
        return 3;
    free(other);
    free(aligned_alloc(128, 5120));
    free(memalign(256, 5006));
    free(valloc(5007));
    free(pvalloc(5008));
    free(NULL);
    errno = 7;
    if (malloc((size_t)1 << 60) || errno != ENOMEM)
        return 4;
    volatile size_t huge = (size_t)1 << 40;
    if (calloc(huge, huge) || reallocarray(NULL, huge, huge))
        return 5;
    other = (void *)1;
    if (posix_memalign(&other, 3, 10) != EINVAL || other != (void *)1)
        return 6;
    if (!mallopt(M_TOP_PAD, 5010) || malloc_trim(5011) > 1 || !mallinfo2().arena)
        return 8;
    errno = 7;
    free(malloc(5009));
    return errno == 7 ? 0 : 7;
}
