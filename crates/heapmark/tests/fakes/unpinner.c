/* Fakes a library that takes its process to all processors, once it has allocated. */
#define _GNU_SOURCE
#include "own.h"
#include <sched.h>
#include <string.h>

void *malloc(size_t size) {
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);
    sched_setaffinity(0, sizeof all, &all);
    return own_malloc(size);
}
