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
#include <pthread.h>
#include <sys/mman.h>

static const char *names[] = {"malloc 64", "malloc 48",  "malloc 256",
                              "calloc 64", "aligned 64", "malloc 64 of a new thread"};
static char *from, *upto;
static int what, *found; // Shared with the children.

static void *search(void *unused) {
    for (int i = 0; i < 65536 && !*found; i++) {
        size_t bytes = what == 1 ? 48 : what == 2 ? 256 : 64;
        char *block = what == 3 ? calloc(1, bytes) : what == 4 ? memalign(64, bytes) : malloc(bytes);
        *found = block < upto && from < block + bytes;
    }
    return unused;
}

MISUSE {
    static char *row[2000];
    found = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 2000; i++) row[i] = malloc(64);
    from = row[1000], upto = from + 64;
    for (int i = 0; i < 2000; i++) free(row[i]);
    for (int kind = 0; kind < 6; kind++) {
        what = kind, *found = 0;
        const char *ended = apart();
        pthread_t thread;
        if (!ended && kind == 5) pthread_create(&thread, NULL, search, NULL), pthread_join(thread, NULL), leave();
        if (!ended) search(NULL), leave();
        NOTE("%s=%s", names[kind], strcmp(ended, "fine") != 0 ? ended : *found ? "yes" : "no");
    }
}
