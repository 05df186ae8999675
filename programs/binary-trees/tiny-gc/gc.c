// tiny-gc (own), see gc.h. In the order of this file:
//
//   objects     each is one block of malloc with a header of 16 bytes before it
//   regions     bitmaps, one bit for every 16 bytes of a MiB of addresses: does an object begin here? is it marked?
//   marking     from stack, registers and static data; objects still to be scanned are linked through headers, so
//               marking takes no memory, however deep or wide the graph
//   sweeping    objects that are not marked go back to malloc
//   interface   when to collect
//
// Bitmaps instead of a hash table of objects: looking up an address takes three loads, and sweeping visits memory in
// address order without touching live objects.

#define _GNU_SOURCE
#include "gc.h"
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// Memcheck knows which words of the stack were never written, and rightly reports a branch on one of them. Only the copy
// of the word is declared written, nothing in memory, so all other faults are still reported.
#ifdef MEMCHECK
#include <valgrind/memcheck.h>
#else
#define VALGRIND_MAKE_MEM_DEFINED(address, bytes) ((void)0)
#endif

static _Noreturn void die(const char *why) {
    fprintf(stderr, "tiny-gc: %s\n", why);
    abort();
}

// ---- objects

struct header {
    size_t bytes; // of the object, without this header
    struct header *next_gray;
};

enum { GRANULE = 16 };
_Static_assert(sizeof(struct header) == GRANULE, "an object begins where its granule begins");

static size_t heap_bytes; // of all objects with their headers

// ---- regions

enum {
    REGION_BITS = 20,
    LEAF_BITS = 14,
    ROOT_BITS = 47 - LEAF_BITS - REGION_BITS, // user space has 47 bits of address
    BITMAP_WORDS = (1 << REGION_BITS) / GRANULE / 64,
};

struct region {
    struct region *next;
    uintptr_t start;
    uint64_t objects[BITMAP_WORDS];
    uint64_t marks[BITMAP_WORDS];
};

static struct region **leaves[1 << ROOT_BITS]; // a tree of two levels, from address to region
static struct region *all_regions;             // never released: malloc reuses the same addresses

static size_t leaf_of(uintptr_t address) {
    return address >> (REGION_BITS + LEAF_BITS);
}

static size_t index_in_leaf(uintptr_t address) {
    return address >> REGION_BITS & ((1 << LEAF_BITS) - 1);
}

static size_t bitmap_word(uintptr_t address) {
    return (address & ((1 << REGION_BITS) - 1)) / GRANULE / 64;
}

static uint64_t bitmap_bit(uintptr_t address) {
    return (uint64_t)1 << (address / GRANULE % 64);
}

// The region of an address, or NULL if there was never an object in it.
static struct region *find_region(uintptr_t address) {
    if (address >> 47 != 0)
        return NULL;
    struct region **leaf = leaves[leaf_of(address)];
    return leaf == NULL ? NULL : leaf[index_in_leaf(address)];
}

static struct region *find_or_add_region(uintptr_t address) {
    struct region *region = find_region(address);
    if (region != NULL)
        return region;
    if (address >> 47 != 0)
        die("an address beyond 47 bits");
    struct region ***leaf = &leaves[leaf_of(address)];
    if (*leaf == NULL)
        *leaf = calloc(1 << LEAF_BITS, sizeof **leaf);
    region = calloc(1, sizeof *region);
    if (*leaf == NULL || region == NULL)
        die("out of memory");
    region->start = address >> REGION_BITS << REGION_BITS;
    region->next = all_regions;
    all_regions = region;
    return (*leaf)[index_in_leaf(address)] = region;
}

// The region of an object, or NULL if no object begins there.
static struct region *region_of_object(uintptr_t address) {
    if (address % GRANULE != 0)
        return NULL;
    struct region *region = find_region(address);
    return region != NULL && region->objects[bitmap_word(address)] & bitmap_bit(address) ? region : NULL;
}

// ---- marking

static struct header *gray; // marked, but not scanned yet
static uintptr_t stack_base;

static void mark_if_object(uintptr_t word) {
    struct region *region = region_of_object(word);
    if (region == NULL || region->marks[bitmap_word(word)] & bitmap_bit(word))
        return;
    region->marks[bitmap_word(word)] |= bitmap_bit(word);
    struct header *header = (struct header *)word - 1;
    header->next_gray = gray;
    gray = header;
}

// Scans words of any type, and on the stack also AddressSanitizer's areas between variables.
__attribute__((no_sanitize("address"))) static void scan(uintptr_t from, uintptr_t to) {
    typedef uintptr_t __attribute__((may_alias)) any_word;
    from = (from + sizeof from - 1) / sizeof from * sizeof from;
    for (; from + sizeof from <= to; from += sizeof from) {
        uintptr_t word = *(const any_word *)from;
        VALGRIND_MAKE_MEM_DEFINED(&word, sizeof word);
        mark_if_object(word);
    }
}

static int scan_static_data(struct dl_phdr_info *loaded, size_t size, void *nothing) {
    (void)size, (void)nothing;
    for (int i = 0; i < loaded->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &loaded->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && segment->p_flags & PF_W)
            scan(loaded->dlpi_addr + segment->p_vaddr, loaded->dlpi_addr + segment->p_vaddr + segment->p_memsz);
    }
    return 0;
}

// Never inlined: its frame then lies below its caller's, where the registers are.
__attribute__((noinline)) static void mark(void) {
    scan((uintptr_t)__builtin_frame_address(0), stack_base);
    dl_iterate_phdr(scan_static_data, NULL);
    while (gray != NULL) {
        struct header *object = gray;
        gray = object->next_gray;
        scan((uintptr_t)(object + 1), (uintptr_t)(object + 1) + object->bytes);
    }
}

// ---- sweeping

static void sweep(void) {
    for (struct region *region = all_regions; region != NULL; region = region->next) {
        for (size_t word = 0; word < BITMAP_WORDS; word++) {
            uint64_t dead = region->objects[word] & ~region->marks[word];
            region->objects[word] = region->marks[word];
            region->marks[word] = 0;
            for (; dead != 0; dead &= dead - 1) {
                size_t granule = word * 64 + (size_t)__builtin_ctzll(dead);
                struct header *header = (struct header *)(region->start + granule * GRANULE) - 1;
                heap_bytes -= sizeof *header + header->bytes;
                free(header);
            }
        }
    }
}

// ---- interface

// The cost of a collection is proportional to the live bytes, so it waits until a share of them was newly allocated.
enum { LEAST_ALLOCATED = 256 * 1024 };

static size_t allocated_bytes; // since the last collection
static size_t collections;
static GC_on_collection_event_proc on_collection_event;

void GC_gcollect(void) {
    if (on_collection_event != NULL)
        on_collection_event(GC_EVENT_START);
    // Puts every register that a function must preserve into this frame. (setjmp would do, but the C library
    // encrypts some of them in its buffer.) The callers have saved the others.
    __builtin_unwind_init();
    mark();
    sweep();
    allocated_bytes = 0;
    collections++;
    if (on_collection_event != NULL)
        on_collection_event(GC_EVENT_END);
}

void GC_init(void) {
    pthread_attr_t thread;
    void *lowest;
    size_t bytes;
    if (pthread_getattr_np(pthread_self(), &thread) != 0 || pthread_attr_getstack(&thread, &lowest, &bytes) != 0)
        die("cannot find the stack");
    stack_base = (uintptr_t)lowest + bytes;
    pthread_attr_destroy(&thread);
}

void *GC_malloc(size_t bytes) {
    if (allocated_bytes > LEAST_ALLOCATED && allocated_bytes > (heap_bytes - allocated_bytes) / GC_FREE_SPACE_DIVISOR)
        GC_gcollect();
    if (bytes > PTRDIFF_MAX)
        return NULL;
    size_t whole = sizeof(struct header) + (bytes > 0 ? bytes : 1);
    struct header *header = calloc(1, whole);
    if (header == NULL) {
        GC_gcollect();
        header = calloc(1, whole);
        if (header == NULL)
            return NULL;
    }
    header->bytes = whole - sizeof *header;
    heap_bytes += whole;
    allocated_bytes += whole;

    uintptr_t address = (uintptr_t)(header + 1);
    if (address % GRANULE != 0)
        die("malloc aligns to less than 16 bytes");
    find_or_add_region(address)->objects[bitmap_word(address)] |= bitmap_bit(address);
    return header + 1;
}

void GC_free(void *object) {
    if (object == NULL)
        return;
    uintptr_t address = (uintptr_t)object;
    struct region *region = region_of_object(address);
    if (region == NULL)
        die("GC_free of what is no object");
    region->objects[bitmap_word(address)] &= ~bitmap_bit(address);
    struct header *header = (struct header *)object - 1;
    size_t whole = sizeof *header + header->bytes;
    heap_bytes -= whole;
    // Whether it is new or old is unknown; treating it as new only delays the next collection.
    allocated_bytes -= whole < allocated_bytes ? whole : allocated_bytes;
    free(header);
}

void *GC_base(void *address) {
    return region_of_object((uintptr_t)address) != NULL ? address : NULL;
}

size_t GC_get_gc_no(void) {
    return collections;
}

size_t GC_get_heap_size(void) {
    return heap_bytes;
}

size_t GC_get_free_bytes(void) {
    return 0;
}

void GC_set_on_collection_event(GC_on_collection_event_proc callback) {
    on_collection_event = callback;
}
