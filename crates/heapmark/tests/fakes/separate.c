/* Fakes an allocator whose operators of C++ have size classes of their own: aborts where a block goes back by a function that does not
   belong to the one that made it, or with a size or an alignment that is not its own. Has no memory for 77777 bytes. */
#include "own.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum maker { C = 0x5e9a0001, NEW, NEW_ALIGNED };

struct head {
    void *whole;
    size_t size, alignment, maker;
};

static void *make(enum maker maker, size_t size, size_t alignment) {
    char *whole = own_malloc(size + alignment + sizeof(struct head));
    if (!whole) return NULL;
    uintptr_t start = ((uintptr_t)whole + sizeof(struct head) + alignment - 1) & ~(uintptr_t)(alignment - 1);
    ((struct head *)start)[-1] = (struct head){whole, size, alignment, maker};
    return (void *)start;
}

/* A size or an alignment of 0 is none that is told. */
static void end(void *block, enum maker maker, size_t size, size_t alignment) {
    if (!block) return;
    struct head *head = (struct head *)block - 1;
    if (head->maker != maker || (size && size != head->size) || (alignment && alignment != head->alignment)) {
        fprintf(stderr, "block of maker %zx, size %zu, given back as of maker %x, size %zu\n", head->maker, head->size, maker, size);
        abort();
    }
    head->maker = 0;
    own_free(head->whole);
}

void *malloc(size_t size) { return make(C, size, 16); }
void free(void *block) { end(block, C, 0, 0); }

void *calloc(size_t count, size_t size) {
    void *block = make(C, count * size, 16);
    return block ? memset(block, 0, count * size) : NULL;
}

void *realloc(void *old, size_t size) {
    void *block = make(C, size, 16);
    if (old && block) {
        size_t before = ((struct head *)old)[-1].size;
        memcpy(block, old, before < size ? before : size);
        end(old, C, 0, 0);
    }
    return block;
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    *block = make(C, size, alignment);
    return *block ? 0 : ENOMEM;
}

static void (*handler)(void);
void (*_ZSt15set_new_handlerPFvvE(void (*new)(void)))(void) {
    void (*old)(void) = handler;
    handler = new;
    return old;
}

void *_Znwm(size_t size) {
    if (size == 77777) {
        if (handler) handler();
        abort();
    }
    return make(NEW, size, 16);
}
void _ZdlPv(void *block) { end(block, NEW, 0, 0); }
void _ZdlPvm(void *block, size_t size) { end(block, NEW, size, 0); }
void *_ZnwmSt11align_val_t(size_t size, size_t alignment) { return make(NEW_ALIGNED, size, alignment); }
void _ZdlPvSt11align_val_t(void *block, size_t alignment) { end(block, NEW_ALIGNED, 0, alignment); }
void _ZdlPvmSt11align_val_t(void *block, size_t size, size_t alignment) { end(block, NEW_ALIGNED, size, alignment); }
