/* Fakes an allocator whose malloc and free are functions that are chosen as the program starts, and that are libc's. libc itself
   asks before this library knows where anything is: it is given ours. */
#include "own.h"

void *__libc_malloc(size_t size);
void __libc_free(void *block);

static void *ours(size_t size) { return own_malloc(size); }
static void take_ours(void *block) { own_free(block); }

static void *(*choose(void))(size_t) {
    void *(*volatile libcs)(size_t) = __libc_malloc;
    return libcs ? libcs : ours;
}

static void (*choose_free(void))(void *) {
    void (*volatile libcs)(void *) = __libc_free;
    return libcs ? libcs : take_ours;
}

void *malloc(size_t size) __attribute__((ifunc("choose")));
void free(void *block) __attribute__((ifunc("choose_free")));
