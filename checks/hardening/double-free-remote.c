/*
about = "a block is freed by its owner that another thread has freed, before the owner has collected it"
group = "double free"
source = "snmalloc corruption_detection"
why = "such blocks wait in a queue of their own"
*/
#include "../harness/misuse.h"
#include <pthread.h>

static char *volatile row[64];

static void *drop(void *unused) {
    for (int i = 0; i < 64; i += 2) give(row[i]);
    return unused;
}

MISUSE {
    pthread_t thread;
    for (int i = 0; i < 64; i++) row[i] = take(size);
    pthread_create(&thread, NULL, drop, NULL);
    pthread_join(thread, NULL);
    misuse();
    if (wrong) free(row[30]);
    pairs(65536);
}
