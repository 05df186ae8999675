/* Fakes an allocator that serves the main thread by itself and hands on to libc what all others ask for. */
#define _GNU_SOURCE
#include "own.h"
#include <unistd.h>

void *__libc_malloc(size_t size);

void *malloc(size_t size) {
    static _Thread_local pid_t thread;
    if (!thread) thread = gettid();
    return thread == getpid() ? own_malloc(size) : __libc_malloc(size);
}
