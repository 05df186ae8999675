/* An allocator with planted knobs, read from its environment: each changes the work of each malloc by so many per cent, alone or with
   its partner. INERT is read and does nothing. For programs of one thread. */
#define _GNU_SOURCE
#include "own.h"
#include <stdint.h>
#include <stdlib.h>

#ifndef WORK
#define WORK 8000
#endif

static int work_of_each = -1;

static int is_set(const char *name) {
    const char *value = getenv(name);
    return value && *value == '1';
}

static int percent(void) {
    volatile int inert = is_set("KNOBS_INERT");
    int all = 100;
    (void)inert;
    if (is_set("KNOBS_FASTER")) all -= 10;
    if (is_set("KNOBS_SLOWER")) all += 10;
    if (is_set("KNOBS_LITTLE")) all += 2;
    if (is_set("KNOBS_NEEDS") && is_set("KNOBS_NEEDED")) all -= 8;
    if (is_set("KNOBS_HARMFUL")) all += is_set("KNOBS_HEALING") ? -5 : 10;
    return all;
}

void *malloc(size_t size) {
    if (work_of_each < 0) work_of_each = WORK / 100 * percent();
    uint64_t x = 1;
    for (int i = 0; i < work_of_each; i++) {
        x = x * 3 + 1;
        __asm__ volatile("" : "+r"(x));
    }
    return own_malloc(size);
}

void free(void *block) { own_free(block); }
