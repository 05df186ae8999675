/*
about = "whether aligned blocks can be freed plainly, and plain ones as aligned"
group = "mismatch"
source = "CWE-762; C23 free_aligned_sized"
why = "the first must work, the second is wrong"
ends = "values"
trials = 1
sizes = [24, 262144]
*/
#include "../harness/misuse.h"

MISUSE {
    void (*drop)(void *, size_t) = operator_of("_ZdlPvSt11align_val_t");
    for (size_t alignment = 64; alignment <= 1 << 21; alignment *= 32) {
        char *block = memalign(alignment, size), *plain = malloc(size);
        const char *right = apart(), *wrongly = right ? apart() : NULL;
        if (!right) free(block), leave();
        else if (!wrongly) wrong ? drop(plain, alignment) : free(plain), leave();
        else NOTE("%zu=freed plainly: %s, plain as aligned: %s", alignment, right, wrongly);
    }
}
