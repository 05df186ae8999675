/* Fakes a library that keeps each thread but the first on one processor, once it has allocated. */
#define _GNU_SOURCE
#include "own.h"
#include <sched.h>
#include <unistd.h>

static __thread int is_pinned;

static void pin(void) {
    cpu_set_t all, one;
    int cpu = 0;
    is_pinned = 1;
    sched_getaffinity(0, sizeof all, &all);
    while (!CPU_ISSET(cpu, &all)) cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

void *malloc(size_t size) {
    if (!is_pinned && gettid() != getpid()) pin();
    return own_malloc(size);
}
