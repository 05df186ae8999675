/*
about = "two threads free the same block at once, again and again"
group = "double free"
source = "CWE-415, CWE-362"
why = "both may see it as live"
sizes = [24]
rate = true
*/
#include "../harness/misuse.h"
#include <pthread.h>

static char *volatile block;
static volatile int gone;

static void *race(void *unused) {
    for (int idle = 0; !gone; idle++) {
        char *it = block;
        if (it) free(it), block = NULL, idle = 0;
        // The other thread may wait for this CPU.
        if (idle > 10000) sched_yield();
    }
    return unused;
}

MISUSE {
    pthread_t thread;
    misuse();
    pthread_create(&thread, NULL, race, NULL);
    for (int round = 0; round < 1000; round++) {
        char *it = take(size);
        disown(it);
        if (!wrong) free(it);
        if (wrong) block = it;
        if (wrong) free(it);
        while (block) sched_yield();
    }
    gone = 1;
    pthread_join(thread, NULL);
}
