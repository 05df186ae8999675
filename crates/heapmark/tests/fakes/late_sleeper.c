/* Puts its state away at the end of a thread, and of the process: each free after that takes a millisecond. */
#include "own.h"
#include <pthread.h>
#include <unistd.h>

#ifndef LATE
#define LATE usleep(1000)
#endif

static pthread_key_t key;
static __thread char known;
static __thread char gone;
static char ended;

static void end_thread(void *value) { (void)value, gone = 1; }

__attribute__((constructor)) static void make(void) { pthread_key_create(&key, end_thread); }
__attribute__((destructor)) static void end(void) { ended = 1; }

void *malloc(size_t size) {
    if (!known) {
        known = 1;
        pthread_setspecific(key, &known);
    }
    return own_malloc(size);
}

void free(void *block) {
    if (block && own_has(block) && (gone || ended)) {
        LATE;
    }
    own_free(block);
}
