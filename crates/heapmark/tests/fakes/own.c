/* No fake of its own: memory that is not libc's, in blocks of powers of two from one mapping, under one lock. A fake is linked
   with this and defines what it does otherwise. What was not handed out here is libc's. */
#define _GNU_SOURCE
#include "own.h"
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#ifndef OWN_ADVICE
#define OWN_ADVICE MADV_NOHUGEPAGE
#endif

enum { LEAST = 5, CLASSES = 40, HEAD = 16 };

struct block {
    size_t class;
    struct block *next;
};

static const size_t room = (size_t)1 << 34;
static char *start, *fresh;
static struct block *freed[CLASSES];
static char locked;

void __libc_free(void *block);
void *__libc_realloc(void *block, size_t size);

size_t own_size(void *block) { return ((size_t)1 << ((struct block *)((char *)block - HEAD))->class) - HEAD; }

static void lock(void) {
    while (__atomic_test_and_set(&locked, __ATOMIC_ACQUIRE)) sched_yield();
}

static void unlock(void) { __atomic_clear(&locked, __ATOMIC_RELEASE); }

int own_has(void *block) { return start && (char *)block >= start && (char *)block < start + room; }

void *own_malloc(size_t size) {
    size_t class = LEAST;
    if (size > room / 2) return NULL;
    while (((size_t)1 << class) - HEAD < size) class++;
    lock();
    struct block *block = freed[class];
    if (block) {
        freed[class] = block->next;
    } else {
        if (!start) {
            void *map = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (map != MAP_FAILED) {
                madvise(map, room, OWN_ADVICE);
                start = fresh = map;
            }
        }
        if (start && (size_t)(start + room - fresh) >= (size_t)1 << class) {
            block = (struct block *)fresh;
            fresh += (size_t)1 << class;
        }
    }
    if (block) block->class = class;
    unlock();
    return block ? (char *)block + HEAD : NULL;
}

void own_free(void *block) {
    if (!block) return;
    if (!own_has(block)) {
        __libc_free(block);
        return;
    }
    struct block *own = (struct block *)((char *)block - HEAD);
    lock();
    own->next = freed[own->class];
    freed[own->class] = own;
    unlock();
}

void *own_calloc(size_t count, size_t size) {
    if (size && count > SIZE_MAX / size) return NULL;
    void *block = own_malloc(count * size);
    return block ? memset(block, 0, count * size) : NULL;
}

void *own_realloc(void *block, size_t size) {
    if (!block) return own_malloc(size);
    if (!own_has(block)) return __libc_realloc(block, size);
    size_t had = own_size(block);
    void *moved = own_malloc(size);
    if (!moved) return NULL;
    memcpy(moved, block, had < size ? had : size);
    own_free(block);
    return moved;
}

__attribute__((weak)) void *malloc(size_t size) { return own_malloc(size); }
__attribute__((weak)) void free(void *block) { own_free(block); }
__attribute__((weak)) void *calloc(size_t count, size_t size) { return own_calloc(count, size); }
__attribute__((weak)) void *realloc(void *block, size_t size) { return own_realloc(block, size); }
