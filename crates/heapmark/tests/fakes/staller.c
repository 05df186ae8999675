/* Fakes a rare stall: every 4000th malloc sleeps for 5 ms, far more often than 1 of 10,000 and far less than every second. */
#include "own.h"
#include <time.h>

void *malloc(size_t size) {
    static unsigned long calls;
    if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) % 4000 == 0) {
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return own_malloc(size);
}
