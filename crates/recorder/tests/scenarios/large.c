/* Large blocks that are touched in part, with gaps, freed, grown, not grown, or kept. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    size_t mib = 1 << 20;
    char *half = malloc(8 * mib), *none = calloc(4, mib), *grown = malloc(2 * mib), *kept = malloc(16 * mib);
    memset(half, 1, 4 * mib);
    memset(grown, 1, 2 * mib);
    memset(kept, 1, mib);
    free(half);
    free(none);
    grown = realloc(grown, 3 * mib);
    volatile size_t impossible = PTRDIFF_MAX;
    if (realloc(grown, impossible))
        return 1;
    free(grown);
    char *gaps = malloc(40 * mib);
    for (size_t at = 0; at < 6 * mib; at += 2 * mib)
        memset(gaps + at, 1, mib);
    free(gaps);
    free(malloc(1000));
    return kept == NULL;
}
