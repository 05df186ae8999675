/*
about = "which calls can get the memory of a freed 64-byte block"
group = "reuse"
source = "isolation by size, thread and type"
why = "a stale pointer then points into an object of that kind"
ends = "values"
trials = 1
sizes = [64]
*/
#include "../harness/misuse.h"
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>

enum { SMALLER = 1, LARGER, CALLOC, ALIGNED, NEW, THREAD, KINDS };
static const char *names[] = {"malloc 64", "malloc 48", "malloc 256", "calloc 64", "aligned 64", "operator new 64", "malloc 64 of a new thread"};
static char *from, *upto, *(*make)(size_t);
static int what, *found; // Shared with the children.

static void *search(void *unused) {
    for (int i = 0; i < 65536 && !*found; i++) {
        size_t bytes = what == SMALLER ? 48 : what == LARGER ? 256 : 64;
        char *other = what == CALLOC ? calloc(1, bytes) : what == ALIGNED ? memalign(64, bytes) : NULL;
        char *block = other ? other : what == NEW ? make(bytes) : malloc(bytes);
        *found = block < upto && from < block + bytes;
    }
    return unused;
}

MISUSE {
    static char *row[2000];
    found = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL)) make = (char *(*)(size_t))dlsym(RTLD_DEFAULT, "_Znwm");
    for (int i = 0; i < 2000; i++) row[i] = malloc(64);
    from = row[1000], upto = from + 64;
    for (int i = 0; i < 2000; i++) free(row[i]);
    for (int kind = 0; kind < KINDS; kind++) {
        what = kind, *found = 0;
        const char *ended = kind == NEW && !make ? "no libstdc++" : apart();
        pthread_t thread;
        if (!ended && kind == THREAD) pthread_create(&thread, NULL, search, NULL), pthread_join(thread, NULL), leave();
        if (!ended) search(NULL), leave();
        NOTE("%s=%s", names[kind], strcmp(ended, "fine") != 0 ? ended : *found ? "yes" : "no");
    }
}
