/* Counts in the file HEAPMARK_REACH, for each process of a tree, what a preloaded allocator would serve: the calls of the
 * malloc family, the live bytes and their maximum, and the most that glibc has taken from the system for them. Also counts
 * the anonymous memory at the beginning of the process, and deletes of C++ that state another size than the block has.
 * Everything is counted at once; a process that ends by itself adds what is resident and live then. glibc serves all calls;
 * live bytes are those that it reports as usable. */
#define _GNU_SOURCE
#include "handed.h"
#include "libc.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The most processes that are counted. The reader has the same number, and the same words of eight bytes. */
enum { PROCESSES = 4096 };
/* Further live bytes, and calls, after which glibc's account is read again: reading it takes long. */
enum { MORE_LIVE = 1 << 20, CALLS = 1 << 20 };

struct process {
    _Atomic int64_t pid, began_bytes, began_live, calls, live, most_live, taken, other_sizes, end_resident, end_live;
};

struct reached {
    _Atomic int64_t processes, unused[9];
    struct process process[PROCESSES];
};

/* The same fields as in glibc's struct mallinfo2, which the headers of an older glibc lack. */
struct account {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
__attribute__((weak)) struct account mallinfo2(void);
size_t malloc_usable_size(void *);

static struct reached *all;
static struct process *own;
static _Atomic int64_t next_look;

static void at_least(_Atomic int64_t *most, int64_t value) {
    int64_t before = atomic_load(most);
    while (before < value && !atomic_compare_exchange_weak(most, &before, value)) {}
}

static void look_at_account(void) {
    if (!own || !mallinfo2) return;
    struct account account = mallinfo2();
    at_least(&own->taken, (int64_t)(account.arena + account.hblkhd));
}

struct memory {
    int64_t resident, anonymous;
};

/* Returns the resident and the anonymous memory of this process, in bytes. */
static struct memory memory(void) {
    char text[128], *rest;
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, text, sizeof text - 1);
    close(file);
    text[length < 0 ? 0 : length] = 0;
    strtol(text, &rest, 10);
    int64_t page = sysconf(_SC_PAGESIZE), resident = strtol(rest, &rest, 10) * page;
    return (struct memory){resident, resident - strtol(rest, NULL, 10) * page};
}

static void begin_process(int64_t live) {
    int64_t place = atomic_fetch_add(&all->processes, 1);
    own = NULL;
    if (place < 0 || place >= PROCESSES) return;
    struct process *process = &all->process[place];
    process->began_bytes = memory().anonymous;
    process->began_live = process->live = process->most_live = live;
    process->pid = getpid();
    own = process;
}

static void in_child(void) {
    if (own) begin_process(own->live);
}

__attribute__((constructor)) static void begin(void) {
    int error = errno;
    int file = handed(getenv("HEAPMARK_REACH"), O_RDWR);
    if (file >= 0) {
        void *map = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        close(file);
        if (map != MAP_FAILED) {
            all = map;
            begin_process(0);
            pthread_atfork(NULL, NULL, in_child);
        }
    }
    errno = error;
}

__attribute__((destructor)) static void end(void) {
    look_at_account();
    if (!own) return;
    own->end_live = own->live;
    own->end_resident = memory().resident;
}

static void *added(void *block) {
    if (!own) return block;
    int64_t calls = atomic_fetch_add_explicit(&own->calls, 1, memory_order_relaxed);
    int64_t usable = block ? (int64_t)malloc_usable_size(block) : 0;
    int64_t live = atomic_fetch_add_explicit(&own->live, usable, memory_order_relaxed) + usable;
    at_least(&own->most_live, live);
    if (calls % CALLS == CALLS - 1 || live >= atomic_load_explicit(&next_look, memory_order_relaxed)) {
        at_least(&next_look, live + live / 8 + MORE_LIVE);
        look_at_account();
    }
    return block;
}

static void removed(void *block) {
    if (own && block) atomic_fetch_sub_explicit(&own->live, (int64_t)malloc_usable_size(block), memory_order_relaxed);
}

void *malloc(size_t size) { return added(__libc_malloc(size)); }
void *calloc(size_t count, size_t size) { return added(__libc_calloc(count, size)); }
void *memalign(size_t align, size_t size) { return added(__libc_memalign(align, size)); }
void *aligned_alloc(size_t align, size_t size) { return memalign(align, size); }

void *realloc(void *old, size_t size) {
    int64_t before = own && old ? (int64_t)malloc_usable_size(old) : 0;
    void *block = __libc_realloc(old, size);
    if (own && (block || !size)) atomic_fetch_sub_explicit(&own->live, before, memory_order_relaxed);
    return added(block);
}

void free(void *block) {
    if (own && block) atomic_fetch_add_explicit(&own->calls, 1, memory_order_relaxed);
    removed(block);
    __libc_free(block);
}

/* Returns whether glibc gave a block for a request of that size. The block's header, which lies before it, shows if the
 * block has pages of its own; a rest that is too small for another block is added to a block. */
static int has_size(void *block, size_t size) {
    size_t chunk = malloc_usable_size(block) + sizeof size, wanted = (size + sizeof size + 15) & ~(size_t)15;
    int has_pages = ((size_t *)block)[-1] & 2;
    if (wanted < 32) wanted = 32;
    return wanted <= chunk + 15 && chunk < wanted + (has_pages ? 8192 : 32);
}

typedef void deleter(void *, size_t, size_t);

/* Returns the operator that the caller would have called without this library: the next one, or that of a library which was
 * opened later and is visible to few others. */
static deleter *next_of(const char *name, void *caller) {
    Dl_info info;
    void *next = dlsym(RTLD_NEXT, name);
    if (next || !dladdr(caller, &info)) return next;
    void *library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return library ? dlsym(library, name) : NULL;
}

/* The operator that the last caller of a thread would have called, and whether the caller's deletes are counted. */
struct operator {
    void *caller;
    deleter *next;
    int counts;
};

/* Counts only deletes of a C++ runtime, which passes blocks on to free: only those blocks are glibc's. */
static void delete(struct operator *known, const char *name, void *caller, void *block, size_t size, size_t align) {
    if (known->caller != caller) {
        Dl_info info = {0};
        known->next = next_of(name, caller);
        known->counts = known->next && dladdr((void *)known->next, &info) && info.dli_fname &&
                        (strstr(info.dli_fname, "/libstdc++.so") || strstr(info.dli_fname, "/libc++"));
        known->caller = caller;
    }
    if (known->counts && own && block && !has_size(block, size)) atomic_fetch_add(&own->other_sizes, 1);
    if (known->next) {
        known->next(block, size, align);
    } else {
        free(block);
    }
}

#define DELETE(name, ...)                                                                 \
    void name(void *block, size_t size __VA_ARGS__) {                                     \
        static __thread struct operator known __attribute__((tls_model("initial-exec")));      \
        delete(&known, #name, __builtin_return_address(0), block, size, ALIGN);           \
    }

#define ALIGN 0
DELETE(_ZdlPvm)
DELETE(_ZdaPvm)
#undef ALIGN
#define ALIGN align
DELETE(_ZdlPvmSt11align_val_t, , size_t align)
DELETE(_ZdaPvmSt11align_val_t, , size_t align)
