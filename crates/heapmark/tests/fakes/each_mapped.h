/* No fake of its own: every block is a mapping, and what is freed is kept for nothing. What happens once the kernel
   refuses a mapping is the fake's: `no_mapping` returns what malloc has instead. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

struct head {
    struct head *self, *next;
    size_t bytes, size;
};

#ifndef FREED_LAZILY
static struct head *kept;
#endif

void __libc_free(void *block);
void *__libc_realloc(void *block, size_t size);

static void *no_mapping(size_t bytes);

static void *map(size_t bytes) {
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static struct head *head_of(void *block) {
    struct head *head = (struct head *)block - 1;
    /* What libc has aligned is libc's. */
    return head->self == head ? head : NULL;
}

void *malloc(size_t size) {
    if (size > SIZE_MAX / 2) return NULL;
    size_t bytes = (size + sizeof(struct head) + PAGE - 1) / PAGE * PAGE;
    struct head *head = map(bytes);
    if (head == MAP_FAILED) head = no_mapping(bytes);
    if (head == MAP_FAILED) return NULL;
    *head = (struct head){head, NULL, bytes, size};
    return head + 1;
}

void free(void *block) {
    if (!block) return;
    struct head *head = head_of(block);
    if (!head) {
        __libc_free(block);
        return;
    }
    head->self = NULL;
#ifdef FREED_LAZILY
    madvise(head, head->bytes, MADV_FREE);
#else
    head->next = __atomic_load_n(&kept, __ATOMIC_ACQUIRE);
    while (!__atomic_compare_exchange_n(&kept, &head->next, head, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {}
#endif
}

void *calloc(size_t count, size_t size) {
    if (size && count > SIZE_MAX / size) return NULL;
    return malloc(count * size);
}

void *realloc(void *block, size_t size) {
    if (!block) return malloc(size);
    struct head *head = head_of(block);
    if (!head) return __libc_realloc(block, size);
    void *moved = malloc(size);
    if (!moved) return NULL;
    memcpy(moved, block, head->size < size ? head->size : size);
    free(block);
    return moved;
}
