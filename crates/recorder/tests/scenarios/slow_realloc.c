/* Takes at least 200 us for each realloc. */
#include <stddef.h>
#include <time.h>

extern void *__libc_realloc(void *, size_t);

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

void *realloc(void *block, size_t size) {
    for (long long start = now_ns(); now_ns() < start + 200000;) {
    }
    return __libc_realloc(block, size);
}
