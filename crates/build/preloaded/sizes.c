/* Counts in the file HEAPMARK_SIZES, for each program of a tree, how often each size is requested, the most bytes that are
 * live in one of its processes, and the most threads of one process that allocate. Everything is counted at once, so that
 * nothing remains to be done at the end of a process. glibc serves all calls; live bytes are those that it reports as
 * usable. */
#define _GNU_SOURCE
#include "handed.h"
#include "libc.h"
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* CLASS is the number of size classes of each power of two. Everything is in words of eight bytes, and the reader has the
 * same numbers. */
enum { PROGRAMS = 64, PATH_WORDS = 64, CLASS_BITS = 4, CLASS = 1 << CLASS_BITS, CLASSES = 48 * CLASS };

struct program {
    uint64_t device, inode, path[PATH_WORDS];
    _Atomic uint64_t threads, most_live_bytes, requests[CLASSES], bytes[CLASSES];
};

struct counted {
    _Atomic uint64_t programs;
    struct program program[PROGRAMS];
};

static struct program *own;
static _Atomic uint64_t live_bytes, threads;
static __thread int known __attribute__((tls_model("initial-exec")));

static void at_least(_Atomic uint64_t *most, uint64_t value) {
    uint64_t before = atomic_load(most);
    while (before < value && !atomic_compare_exchange_weak(most, &before, value)) {}
}

__attribute__((constructor)) static void begin(void) {
    struct stat exe;
    int file = stat("/proc/self/exe", &exe) ? -1 : handed(getenv("HEAPMARK_SIZES"), O_RDWR);
    if (file < 0) return;
    struct counted *counted = mmap(NULL, sizeof *counted, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (counted == MAP_FAILED) return;
    /* Two processes that begin at once may each take a place for the same program: the reader adds both up. */
    uint64_t places = atomic_load(&counted->programs), place = 0;
    for (; place < places && place < PROGRAMS; place++)
        if (counted->program[place].device == exe.st_dev && counted->program[place].inode == exe.st_ino) break;
    if (place == places) place = atomic_fetch_add(&counted->programs, 1);
    if (place >= PROGRAMS) return;
    struct program *program = &counted->program[place];
    if (readlink("/proc/self/exe", (char *)program->path, sizeof program->path - 1) < 0) return;
    program->device = exe.st_dev;
    program->inode = exe.st_ino;
    own = program;
}

static void *added(void *block, size_t size) {
    if (!own || !block) return block;
    uint32_t shift = 63 - (uint32_t)__builtin_clzll(size | CLASS) - CLASS_BITS;
    uint32_t class = shift * CLASS + (uint32_t)(size >> shift);
    if (class < CLASSES) {
        atomic_fetch_add_explicit(&own->requests[class], 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&own->bytes[class], size, memory_order_relaxed);
    }
    size_t usable = malloc_usable_size(block);
    at_least(&own->most_live_bytes, atomic_fetch_add(&live_bytes, usable) + usable);
    if (!known) {
        known = 1;
        at_least(&own->threads, atomic_fetch_add(&threads, 1) + 1);
    }
    return block;
}

static void removed(void *block) {
    if (own && block) atomic_fetch_sub(&live_bytes, malloc_usable_size(block));
}

void *malloc(size_t size) { return added(__libc_malloc(size), size); }
void *calloc(size_t count, size_t size) { return added(__libc_calloc(count, size), count * size); }
void *memalign(size_t align, size_t size) { return added(__libc_memalign(align, size), size); }
void *aligned_alloc(size_t align, size_t size) { return memalign(align, size); }

void *realloc(void *old, size_t size) {
    size_t before = own && old ? malloc_usable_size(old) : 0;
    void *block = __libc_realloc(old, size);
    if (block || !size) atomic_fetch_sub(&live_bytes, before);
    return added(block, size);
}

void free(void *block) {
    removed(block);
    __libc_free(block);
}
