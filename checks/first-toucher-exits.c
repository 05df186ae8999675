/*
about = "the first thread that allocates may end before the main thread allocates"
group = "threads"
standing = "robust"
source = "mimalloc-safe pull request 97"
why = "the heap of the first thread is often the one of the process"
*/
#include "harness/check.h"
#include <dlfcn.h>
#include <pthread.h>

static void *(*take)(size_t);
static void (*give)(void *);
static void *blocks[100];

static void *body(void *unused) {
    for (int which = 0; which < 100; which++) memset(blocks[which] = take(1000), which, 1000);
    return unused;
}

CHECK {
    // pthread_create itself allocates in the main thread. So the library is loaded later, beside the C library's malloc.
    char *path = getenv("AGAIN"), *preloaded = getenv("LD_PRELOAD");
    if (!path) unsetenv("LD_PRELOAD");
    if (!path) AGAIN(preloaded && *preloaded ? strtok(preloaded, " :") : "libc.so.6");
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!library) UNSUPPORTED("it cannot be loaded by dlopen");
    take = dlsym(library, "malloc"), give = dlsym(library, "free");
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, NULL)) UNSUPPORTED("no thread");
    pthread_join(thread, NULL);
    for (int which = 0; which < 100; which++) {
        EXPECT(*(unsigned char *)blocks[which] == which, "a block of a thread that has ended was changed");
        give(blocks[which]);
    }
    EXPECT(take(1000), "malloc failed");
}

#ifdef PLANTED
#include <sys/mman.h>
static char *heap;
static pthread_key_t key;
static void end(void *unused) { munmap(unused, 1 << 20); }
// Its heap is that of the first thread, and ends with it.
void *malloc(size_t size) {
    static size_t used;
    if (used > 1000000) return __libc_malloc(size);
    if (!heap) {
        heap = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        pthread_key_create(&key, end);
        pthread_setspecific(key, heap);
    }
    return heap + (used += (size + 15) & ~15ul) - ((size + 15) & ~15ul);
}
void free(void *block) { (void)block; }
#endif
