/*
about = "a thread with the smallest stack can move 64 MiB, align, and meet the end of memory"
group = "threads"
standing = "robust"
source = "PTHREAD_STACK_MIN"
why = "rare paths are the deepest"
*/
#include "harness/check.h"
#include <limits.h>
#include <pthread.h>
#include <sys/resource.h>

static void *body(void *unused) {
    char *block = malloc(1);
    for (size_t size = 1 << 10; block && size <= 64 << 20; size *= 4) block = realloc(block, size);
    EXPECT(block, "realloc to 64 MiB failed");
    free(block);
    for (size_t alignment = 16; alignment <= 1 << 20; alignment *= 4) free(memalign(alignment, 5000));
    struct rlimit limit = {256 << 20, RLIM_INFINITY};
    setrlimit(RLIMIT_DATA, &limit);
    void **last = NULL, **next;
    while ((next = malloc(1 << 20))) *next = last, last = next;
    for (; last; last = next) next = *last, free(last);
    return unused;
}

CHECK {
    pthread_attr_t smallest;
    pthread_t thread;
    pthread_attr_init(&smallest);
    pthread_attr_setstacksize(&smallest, PTHREAD_STACK_MIN);
    if (pthread_create(&thread, &smallest, body, NULL)) UNSUPPORTED("no thread with %ld bytes of stack", (long)PTHREAD_STACK_MIN);
    pthread_join(thread, NULL);
}

#ifdef PLANTED
void *malloc(size_t size) {
    void *block = __libc_malloc(size);
    if (block) return block;
    volatile char deep[40000];
    for (int place = 40000; place > 0; place -= 1000) deep[place - 1] = 1;
    return NULL;
}
#endif
