/* Fakes allocators that notice every misuse and answer it in one way: ANSWER is one of the words below. Blocks are never split or
   merged, and their list is beside them, so that nothing else happens. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { stops, stops_late, traps, absorbs, crashes, spills, corrupts, dies, exits, hangs, hands_out, unlinks };
enum kind { of_malloc, of_new, of_array };

/* Between blocks, and in freed ones, lie known bytes; a block that traps ends before a page without rights instead. */
enum { MARGIN = ANSWER == spills || ANSWER == unlinks ? 0 : 16, FREED = 0x66, LOOKED_AT = 256, PAGE = 4096, LATER = 40 };
static const size_t room = (size_t)1 << 36;
static char *start, *fresh;
static struct slot { char *at; size_t size, room; int live; enum kind kind; } slots[60000];
static int count, later, twice, calls;
/* Of freed blocks, by the rest of their size; slots are in the order of their addresses. */
static int idle[1024];
static char *last, *unknown, locked;

static void lock(void) { while (__atomic_test_and_set(&locked, __ATOMIC_ACQUIRE)) sched_yield(); }
static void unlock(void) { __atomic_clear(&locked, __ATOMIC_RELEASE); }

static void answer(void) {
    if (ANSWER == stops) abort();
    if (ANSWER == stops_late) later = LATER;
    if (ANSWER == crashes) *(volatile int *)16 = 1;
    if (ANSWER == exits) _exit(1);
    if (ANSWER == hangs) pause();
    if (ANSWER == corrupts) twice = 2;
}

static void called(void) {
    if (later && --later == 0) abort();
    if (ANSWER == dies && ++calls == 90) abort();
}

static int are(const char *bytes, size_t number, int value) {
    for (size_t byte = 0; byte < number; byte++)
        if ((unsigned char)bytes[byte] != value) return 0;
    return 1;
}

static struct slot *slot_of(const void *block) {
    int from = 0, to = count;
    while (from < to) {
        int middle = (from + to) / 2;
        if ((const char *)block < slots[middle].at) to = middle;
        else from = middle + 1;
    }
    return from && slots[from - 1].at == block ? &slots[from - 1] : NULL;
}

/* Tells sizes apart, and nothing else: the bytes around one block can be copied to another of its size. */
static int edge(size_t size) { return 1 + size % 251; }

static int is_sound(const struct slot *slot) {
    if (ANSWER == traps || ANSWER == spills) return 1;
    size_t looked_at = slot->size < LOOKED_AT ? slot->size : LOOKED_AT;
    if (!slot->live && !are(slot->at, looked_at, FREED)) return 0;
    int known = edge(slot->size);
    return are(slot->at - MARGIN, MARGIN, known) && are(slot->at + slot->size, MARGIN, known);
}

static size_t up(size_t bytes, size_t alignment) { return (bytes + alignment - 1) & ~(alignment - 1); }

static void *taken(size_t alignment, size_t size, enum kind kind) {
    if (size > room / 64) {
        errno = ENOMEM;
        return NULL;
    }
    if (twice && last) {
        twice--;
        return last;
    }
    if (unknown) {
        char *block = unknown;
        unknown = NULL;
        return block;
    }
    if (ANSWER == spills) size = up(size ? size : 1, 16);
    for (int which = 0; idle[size % 1024] && which < count; which++) {
        struct slot *slot = &slots[which];
        if (slot->live || slot->size != size || (uintptr_t)slot->at % alignment) continue;
        if (!is_sound(slot)) answer();
        /* As a list that goes through freed blocks does. */
        if (ANSWER == unlinks && !is_sound(slot)) **(char ***)slot->at = slot->at;
        if (ANSWER == traps) mprotect((char *)((uintptr_t)slot->at & ~(uintptr_t)(PAGE - 1)), slot->room, PROT_READ | PROT_WRITE);
        slot->live = 1, slot->kind = kind, idle[size % 1024]--;
        return last = slot->at;
    }
    if (!start) start = fresh = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (count == sizeof slots / sizeof *slots) abort();
    struct slot *slot = &slots[count++];
    slot->size = size, slot->live = 1, slot->kind = kind;
    if (ANSWER == traps) {
        slot->room = up(size + alignment, PAGE);
        fresh = (char *)up((uintptr_t)fresh, PAGE);
        slot->at = (char *)((uintptr_t)(fresh + slot->room - size) & ~(alignment - 1));
        if (size < alignment && size % 8 == 0) slot->at = fresh + slot->room - size;
        fresh += slot->room + PAGE;
        mprotect(fresh - PAGE, PAGE, PROT_NONE);
        return last = slot->at;
    }
    slot->at = (char *)up((uintptr_t)fresh + MARGIN, alignment);
    fresh = slot->at + up(size, 16) + MARGIN;
    memset(slot->at - MARGIN, edge(size), MARGIN);
    memset(slot->at + size, edge(size), MARGIN);
    return last = slot->at;
}

static void given(void *block, enum kind kind, size_t size) {
    struct slot *slot = slot_of(block);
    int is_sized_right = size == SIZE_MAX || ANSWER == spills || (slot && slot->size == size);
    if (!slot || !slot->live || !is_sound(slot) || slot->kind != kind || !is_sized_right) {
        answer();
        if (ANSWER == hands_out && !slot) unknown = block;
        return;
    }
    slot->live = 0, idle[slot->size % 1024]++;
    if (ANSWER == traps) mprotect((char *)((uintptr_t)slot->at & ~(uintptr_t)(PAGE - 1)), slot->room, PROT_NONE);
    else if (ANSWER != spills) memset(slot->at, FREED, slot->size < LOOKED_AT ? slot->size : LOOKED_AT);
}

static void *make(size_t alignment, size_t size, enum kind kind) {
    lock();
    called();
    void *block = taken(alignment < 16 ? 16 : alignment, size, kind);
    unlock();
    return block;
}

static void drop(void *block, enum kind kind, size_t size) {
    if (!block) return;
    lock();
    called();
    given(block, kind, size);
    unlock();
}

void *memalign(size_t alignment, size_t size) { return make(alignment, size, of_malloc); }
void *malloc(size_t size) { return memalign(16, size); }
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **place, size_t alignment, size_t size) {
    *place = memalign(alignment, size);
    return *place ? 0 : ENOMEM;
}

void free(void *block) { drop(block, of_malloc, SIZE_MAX); }

/* operator new, new[], delete, delete[], sized and aligned delete. */
void *_Znwm(size_t size) { return make(16, size, of_new); }
void *_Znam(size_t size) { return make(16, size, of_array); }
void _ZdlPv(void *block) { drop(block, of_new, SIZE_MAX); }
void _ZdaPv(void *block) { drop(block, of_array, SIZE_MAX); }
void _ZdlPvm(void *block, size_t size) { drop(block, of_new, size); }
void _ZdlPvSt11align_val_t(void *block, size_t alignment) { drop((uintptr_t)block % alignment ? (void *)1 : block, of_new, SIZE_MAX); }

void *calloc(size_t number, size_t size) {
    if (size && number > SIZE_MAX / size) {
        errno = ENOMEM;
        return NULL;
    }
    void *block = malloc(number * size);
    return block ? memset(block, 0, number * size) : NULL;
}

size_t malloc_usable_size(void *block) {
    lock();
    struct slot *slot = block ? slot_of(block) : NULL;
    if (block && (!slot || !slot->live)) answer();
    unlock();
    return slot ? slot->size : 0;
}

void *realloc(void *block, size_t size) {
    if (!block) return malloc(size);
    lock();
    struct slot *slot = slot_of(block);
    int is_good = slot && slot->live;
    size_t had = slot ? slot->size : 0;
    if (!is_good) answer();
    unlock();
    if (!is_good) return NULL;
    void *moved = malloc(size);
    if (!moved) return NULL;
    memcpy(moved, block, had < size ? had : size);
    free(block);
    return moved;
}
