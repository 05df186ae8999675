#include <sys/resource.h>
// Sets the limit of a resource, if the system's own is not lower.
static void limit(int resource, size_t bytes) {
    struct rlimit now;
    getrlimit(resource, &now);
    now.rlim_cur = bytes < now.rlim_max ? bytes : now.rlim_max;
    setrlimit(resource, &now);
}
// Blocks until NULL or 1 GiB, as a list.
static void **fill(size_t size, size_t *count) {
    void **last = NULL, **block;
    for (*count = 0; *count * size < 1 << 30 && (block = malloc(size)); ++*count) *block = last, last = block;
    return last;
}
static void drain(void **block) {
    for (void **next; block; block = next) next = *block, free(block);
}
