/* The plain wrapper of tutorials: each function looks for the next one of its name in its first call. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

void *malloc(size_t size) {
    static void *(*found)(size_t);
    if (!found) found = (void *(*)(size_t))next("malloc");
    return found(size);
}

void free(void *block) {
    static void (*found)(void *);
    if (!found) found = (void (*)(void *))next("free");
    found(block);
}

void *calloc(size_t count, size_t size) {
    static void *(*found)(size_t, size_t);
    if (!found) found = (void *(*)(size_t, size_t))next("calloc");
    return found(count, size);
}

void *realloc(void *block, size_t size) {
    static void *(*found)(void *, size_t);
    if (!found) found = (void *(*)(void *, size_t))next("realloc");
    return found(block, size);
}
