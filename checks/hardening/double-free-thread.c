/*
about = "another thread frees a block that was freed"
group = "double free"
source = "CWE-415; glibc tst-tcfree4"
why = "each thread has its own cache of freed blocks"
*/
#include "../harness/misuse.h"
#include <pthread.h>

static char *volatile block;
static volatile int gone;

static void *again(void *unused) {
    while (!gone) usleep(100);
    if (block) free(block);
    return unused;
}

MISUSE {
    pthread_t thread;
    pthread_create(&thread, NULL, again, NULL);
    char *it = take(size);
    give(it);
    misuse();
    if (wrong) block = it;
    gone = 1;
    pthread_join(thread, NULL);
}
