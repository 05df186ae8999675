/* Preloaded before an allocator: how much of a program's heap is resident at most. Its heap is the mappings in which its live
   blocks begin and those that the allocator has made, without what others have mapped beside them; the kernel says what of them
   is resident. Looks whenever the blocks grow, after each MiB or so that is allocated, before large blocks are freed, and at the
   end. Writes to AGREEMENT_OUT.PID the highest sum, the blocks' bytes then, and
   the most that was resident of the process in all, without the table of this file. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PLACES = 1 << 22, PAGE = 4096 };

/* Blocks that begin in a page. A page stays where it is once it was seen. */
static struct { uintptr_t page; uint32_t blocks; } *pages;
static size_t live, seen_live, since, freed, highest, at_highest, most;
static int out = -1;
static atomic_flag busy = ATOMIC_FLAG_INIT;
static __thread int inside __attribute__((tls_model("initial-exec")));
static char first[1 << 16];
static size_t first_used;

static void *(*next_malloc)(size_t), *(*next_calloc)(size_t, size_t), *(*next_realloc)(void *, size_t);
static void *(*next_aligned)(size_t, size_t);
static void (*next_free)(void *);
static size_t (*next_usable)(void *);

/* What was mapped by name: by the allocator, for its tables, too, or by others. The kernel may make one mapping of both. */
static struct range { uintptr_t from, to; int is_own; } ranges[1 << 15];
static size_t known;
static uintptr_t code, code_end;

static int is_of_allocator(struct dl_phdr_info *object, size_t size, void *unused) {
    (void)size, (void)unused;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        uintptr_t from = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr, to = from + object->dlpi_phdr[i].p_memsz;
        if (object->dlpi_phdr[i].p_type == PT_LOAD && (uintptr_t)next_malloc - from < to - from) {
            code = from, code_end = to;
            return 1;
        }
    }
    return 0;
}

static int holds(uintptr_t from, uintptr_t to) {
    for (uintptr_t page = from / PAGE; page < to / PAGE; page++) {
        size_t at = page * 0x9e3779b97f4a7c15u >> 42;
        while (pages[at].page && pages[at].page != page) at = (at + 1) % PLACES;
        if (pages[at].page && pages[at].blocks) return 1;
    }
    return 0;
}

/* Resident bytes of what others have mapped in this mapping; -1 if all of it is theirs. */
static long beside(uintptr_t from, uintptr_t to) {
    static unsigned char is_there[1 << 12];
    long sum = 0;
    int is_own = holds(from, to);
    for (size_t i = 0; i < known; i++) {
        uintptr_t at = ranges[i].from > from ? ranges[i].from : from, end = ranges[i].to < to ? ranges[i].to : to;
        is_own |= at < end && ranges[i].is_own;
        while (at < end && !ranges[i].is_own) {
            size_t bytes = end - at < sizeof is_there * PAGE ? end - at : sizeof is_there * PAGE;
            if (mincore((void *)at, bytes, is_there)) break;
            for (size_t page = 0; page < (bytes + PAGE - 1) / PAGE; page++) sum += (is_there[page] & 1) * PAGE;
            at += bytes;
        }
    }
    return is_own ? sum : -1;
}

/* A child begins anew: the table is its parent's. */
static void forked(void) {
    pages = NULL;
    live = seen_live = since = freed = highest = most = 0;
    out = -1;
    atomic_flag_clear(&busy);
}

static void find(void) {
    inside++;
    pthread_atfork(NULL, NULL, forked);
    next_calloc = dlsym(RTLD_NEXT, "calloc");
    next_realloc = dlsym(RTLD_NEXT, "realloc");
    next_aligned = dlsym(RTLD_NEXT, "memalign");
    next_free = dlsym(RTLD_NEXT, "free");
    next_usable = dlsym(RTLD_NEXT, "malloc_usable_size");
    next_malloc = dlsym(RTLD_NEXT, "malloc");
    dl_iterate_phdr(is_of_allocator, NULL);
    inside--;
}

static uint32_t *blocks_in(uintptr_t page) {
    size_t at = page * 0x9e3779b97f4a7c15u >> 42;
    while (pages[at].page && pages[at].page != page) at = (at + 1) % PLACES;
    pages[at].page = page;
    return &pages[at].blocks;
}

static void look(void) {
    static char text[1 << 16];
    int file = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC), ours = 0, is_table = 0;
    size_t sum = 0, all = 0, kept = 0;
    ssize_t got;
    while (file >= 0 && (got = read(file, text + kept, sizeof text - 1 - kept)) > 0) {
        char *line = text, *end;
        text[kept + (size_t)got] = 0;
        while ((end = strchr(line, '\n'))) {
            *end = 0;
            char *rest;
            uintptr_t from = strtoul(line, &rest, 16);
            if (rest > line && *rest == '-') {
                uintptr_t to = strtoul(rest + 1, NULL, 16);
                long others = beside(from, to);
                ours = others >= 0;
                is_table = from <= (uintptr_t)pages && (uintptr_t)pages < to;
                if (ours) sum -= (size_t)others;
            } else if (!is_table && !strncmp(line, "Rss:", 4)) {
                size_t bytes = strtoul(line + 4, NULL, 10) << 10;
                all += bytes;
                sum += ours ? bytes : 0;
            }
            line = end + 1;
        }
        kept = strlen(line);
        memmove(text, line, kept);
    }
    close(file);
    seen_live = live > seen_live ? live : seen_live;
    since = freed = 0;
    if (sum <= highest && all <= most) return;
    at_highest = sum > highest ? live : at_highest;
    highest = sum > highest ? sum : highest;
    most = all > most ? all : most;
    if (out < 0) {
        const char *stem = getenv("AGREEMENT_OUT");
        char path[4096];
        snprintf(path, sizeof path, "%s.%d", stem ? stem : "/dev/null", getpid());
        out = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    }
    char words[96];
    int length = snprintf(words, sizeof words, "%20zu %20zu %20zu\n", highest, at_highest, most);
    if (pwrite(out, words, (size_t)length, 0) < 0) out = -1;
}

static void enter(void) {
    inside++;
    while (atomic_flag_test_and_set(&busy)) usleep(1);
    if (!pages) {
        pages = (void *)syscall(SYS_mmap, NULL, sizeof *pages * PLACES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);
        if (pages == MAP_FAILED) abort();
    }
}

static void leave(void) {
    atomic_flag_clear(&busy);
    inside--;
}

/* Some programs leave all that they have written to the kernel. */
__attribute__((destructor)) static void last(void) {
    enter();
    look();
    leave();
}

static void *born(void *block) {
    if (!block || inside) return block;
    int error = errno;
    size_t bytes = next_usable(block);
    enter();
    ++*blocks_in((uintptr_t)block / PAGE);
    live += bytes;
    since += bytes;
    if (live > seen_live + seen_live / 50 + (64 << 10) || since > (1 << 20) + highest / 64) look();
    leave();
    errno = error;
    return block;
}

static void dies(void *block) {
    if (!block || inside) return;
    int error = errno;
    size_t bytes = next_usable(block);
    enter();
    uint32_t *blocks = blocks_in((uintptr_t)block / PAGE);
    /* What was asked for last may have been written since. */
    freed += bytes;
    if (bytes >= 64 << 10 && live > seen_live / 10 * 9 && freed > (1 << 20) + highest / 64) look();
    if (*blocks) {
        --*blocks;
        live -= live < bytes ? live : bytes;
    }
    leave();
    errno = error;
}

static int is_first(void *block) { return (char *)block >= first && (char *)block < first + sizeof first; }

void *malloc(size_t bytes) {
    if (!next_malloc && !inside) find();
    if (!next_malloc) {
        size_t at = first_used;
        first_used += (bytes + 15) & ~(size_t)15;
        return first_used <= sizeof first ? first + at : NULL;
    }
    return born(next_malloc(bytes));
}
void *calloc(size_t count, size_t bytes) {
    if (!next_malloc && !inside) find();
    return next_malloc ? born(next_calloc(count, bytes)) : malloc(count * bytes);
}
void free(void *block) {
    if (!block || is_first(block)) return;
    dies(block);
    next_free(block);
}
void *realloc(void *old, size_t bytes) {
    if (is_first(old)) return memcpy(malloc(bytes), old, bytes);
    if (!next_malloc && !inside) find();
    dies(old);
    void *block = next_realloc(old, bytes);
    if (!block && bytes) born(old);
    return born(block);
}
void *reallocarray(void *old, size_t count, size_t bytes) { return realloc(old, count * bytes); }
void *memalign(size_t align, size_t bytes) {
    if (!next_malloc) find();
    return born(next_aligned(align, bytes));
}
void *aligned_alloc(size_t align, size_t bytes) { return memalign(align, bytes); }
void *valloc(size_t bytes) { return memalign(PAGE, bytes); }
int posix_memalign(void **place, size_t align, size_t bytes) {
    void *block = memalign(align, bytes);
    if (block) *place = block;
    return block ? 0 : ENOMEM;
}

static void forget(uintptr_t from, uintptr_t to) {
    for (size_t i = 0; i < known; i++) {
        struct range *it = &ranges[i];
        if (it->from >= from && it->to <= to) *it = ranges[--known], i--;
        else if (it->from < from && it->to > from) it->to = from;
        else if (it->from < to && it->to > to) it->from = to;
    }
}
void *mmap(void *where, size_t bytes, int rights, int flags, int file, off_t offset) {
    void *got = (void *)syscall(SYS_mmap, where, bytes, rights, flags, file, offset);
    uintptr_t from = (uintptr_t)got, caller = (uintptr_t)__builtin_return_address(0);
    if (!next_malloc && !inside) find();
    if (got == MAP_FAILED || inside) return got;
    enter();
    forget(from, from + bytes);
    if (known < sizeof ranges / sizeof *ranges)
        ranges[known++] = (struct range){from, from + bytes, caller - code < code_end - code};
    leave();
    return got;
}
int munmap(void *from, size_t bytes) {
    if (!inside) {
        enter();
        forget((uintptr_t)from, (uintptr_t)from + bytes);
        leave();
    }
    return (int)syscall(SYS_munmap, from, bytes);
}

#define SAME(result, name, parameters, ...) result name parameters { __VA_ARGS__ }
SAME(void *, _Znwm, (size_t n), return malloc(n ? n : 1);)
SAME(void *, _Znam, (size_t n), return malloc(n ? n : 1);)
SAME(void *, _ZnwmRKSt9nothrow_t, (size_t n, void *t), (void)t; return malloc(n ? n : 1);)
SAME(void *, _ZnamRKSt9nothrow_t, (size_t n, void *t), (void)t; return malloc(n ? n : 1);)
SAME(void *, _ZnwmSt11align_val_t, (size_t n, size_t a), return memalign(a, n ? n : 1);)
SAME(void *, _ZnamSt11align_val_t, (size_t n, size_t a), return memalign(a, n ? n : 1);)
SAME(void, _ZdlPv, (void *b), free(b);)
SAME(void, _ZdaPv, (void *b), free(b);)
SAME(void, _ZdlPvm, (void *b, size_t n), (void)n; free(b);)
SAME(void, _ZdaPvm, (void *b, size_t n), (void)n; free(b);)
SAME(void, _ZdlPvRKSt9nothrow_t, (void *b, void *t), (void)t; free(b);)
SAME(void, _ZdaPvRKSt9nothrow_t, (void *b, void *t), (void)t; free(b);)
SAME(void, _ZdlPvSt11align_val_t, (void *b, size_t a), (void)a; free(b);)
SAME(void, _ZdaPvSt11align_val_t, (void *b, size_t a), (void)a; free(b);)
SAME(void, _ZdlPvmSt11align_val_t, (void *b, size_t n, size_t a), (void)n; (void)a; free(b);)
SAME(void, _ZdaPvmSt11align_val_t, (void *b, size_t n, size_t a), (void)n; (void)a; free(b);)
