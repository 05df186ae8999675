/*
about = "a block is written that another thread has freed, before its owner has collected it"
group = "use after free"
source = "snmalloc corruption_detection"
why = "such blocks wait in a queue of their own"
forms = ["naive", "informed"]
*/
#include "../harness/misuse.h"
#include <pthread.h>
#include <sys/mman.h>

static char *volatile row[64];

static void *drop(void *unused) {
    for (int i = 0; i < 64; i += 2) give(row[i]);
    return unused;
}

MISUSE {
    char *map = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *forged[2] = {map + 4096, map + 4096};
    pthread_t thread;
    for (int i = 0; i < 64; i++) row[i] = take(size);
    victim(map, 1 << 16);
    pthread_create(&thread, NULL, drop, NULL);
    pthread_join(thread, NULL);
    misuse();
    if (wrong && !informed) poke(row[62], 16);
    if (wrong && informed) copy(row[62], (char *)forged, 16);
    pairs(65536);
}
