/* Fakes an allocator whose malloc and free are another library's functions. */
#include <stddef.h>

void *lend(size_t size);
void take_back(void *block);

static void *none(size_t size) { return size ? NULL : NULL; }
static void leave(void *block) { (void)block; }

static void *(*choose(void))(size_t) {
    void *(*volatile theirs)(size_t) = lend;
    return theirs ? theirs : none;
}

static void (*choose_free(void))(void *) {
    void (*volatile theirs)(void *) = take_back;
    return theirs ? theirs : leave;
}

void *malloc(size_t size) __attribute__((ifunc("choose")));
void free(void *block) __attribute__((ifunc("choose_free")));
