/* Fakes an allocator that is a second libc, loaded beside the one that the program knows. */
#define _GNU_SOURCE
#include "own.h"
#include <dlfcn.h>

static void *(*second_malloc)(size_t);
static void (*second_free)(void *);
static void *(*second_calloc)(size_t, size_t);
static void *(*second_realloc)(void *, size_t);

/* What is allocated meanwhile is of our own memory. */
__attribute__((constructor)) static void load(void) {
    void *libc = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
    if (!libc) return;
    second_free = (void (*)(void *))dlsym(libc, "free");
    second_calloc = (void *(*)(size_t, size_t))dlsym(libc, "calloc");
    second_realloc = (void *(*)(void *, size_t))dlsym(libc, "realloc");
    second_malloc = (void *(*)(size_t))dlsym(libc, "malloc");
}

void *malloc(size_t size) { return second_malloc ? second_malloc(size) : own_malloc(size); }
void *calloc(size_t count, size_t size) { return second_malloc ? second_calloc(count, size) : own_calloc(count, size); }

void free(void *block) {
    if (!block) return;
    if (own_has(block)) own_free(block);
    else second_free(block);
}

void *realloc(void *block, size_t size) {
    if (!block) return malloc(size);
    return own_has(block) ? own_realloc(block, size) : second_realloc(block, size);
}
