/* An allocator that allocates while the dynamic linker looks for it. */
#include <stddef.h>

void *__libc_malloc(size_t);
void __libc_free(void *);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

void *malloc(size_t);
void *early[2];

static void *(*find(void))(size_t) {
    for (int i = 0; i < 2; i++)
        if (!early[i])
            early[i] = malloc(100);
    return __libc_malloc;
}

void *malloc(size_t size) __attribute__((ifunc("find")));

void free(void *block) {
    __libc_free(block);
}

void *calloc(size_t count, size_t size) {
    return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size) {
    return __libc_realloc(block, size);
}
