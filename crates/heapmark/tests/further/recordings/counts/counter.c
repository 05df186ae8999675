/* Counts the calls of the malloc family, for tests that hold recordings against it. Stands behind the recorder in LD_PRELOAD, so that each
 * call which the recorder passes on comes here, and knows nothing of how the recorder writes it down. Every program that a process executes
 * has a file FOLDER/PID.N of numbers that are mapped: they outlive destructors, `_exit` and kills. What an allocator calls of itself is no
 * call of the program's. With MISCOUNTS, a planted fault, each file has one free too many. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* In the order in which they stand in the file. */
enum kind { MALLOC, CALLOC, REALLOC, ALIGNED, FREE, USABLE_SIZE, KINDS };

struct file {
    _Atomic uint64_t calls[KINDS];
    char program[4096 - KINDS * 8];
};

/* Zeros in a child, however it was forked: it has a file of its own. */
struct process {
    _Atomic int opened; /* 0: not yet, 1: under way, 2: done */
    struct file *_Atomic file;
};

static struct process *_Atomic own;
static __thread int inside __attribute__((tls_model("initial-exec")));

static void open_file(struct process *process) {
    for (int number = 0; number < 1000; number++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%d.%d", FOLDER, getpid(), number);
        int descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (descriptor < 0 && errno == EEXIST)
            continue;
        if (descriptor < 0)
            return;
        if (ftruncate(descriptor, sizeof(struct file)) == 0) {
            void *mapped = mmap(NULL, sizeof(struct file), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
            if (mapped != MAP_FAILED) {
                struct file *file = mapped;
                if (readlink("/proc/self/exe", file->program, sizeof file->program - 1) < 0)
                    file->program[0] = '?';
#ifdef MISCOUNTS
                atomic_fetch_add(&file->calls[FREE], 1);
#endif
                atomic_store(&process->file, file);
            }
        }
        close(descriptor);
        return;
    }
}

static void count(enum kind kind) {
    struct process *process = atomic_load_explicit(&own, memory_order_acquire);
    int error = errno;
    if (!process) {
        /* The first call of a program: there is one thread. */
        process = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (process == MAP_FAILED || madvise(process, 4096, MADV_WIPEONFORK))
            abort();
        atomic_store_explicit(&own, process, memory_order_release);
    }
    int not_yet = 0;
    if (atomic_load(&process->opened) != 2) {
        if (atomic_compare_exchange_strong(&process->opened, &not_yet, 1)) {
            open_file(process);
            atomic_store(&process->opened, 2);
        } else {
            while (atomic_load(&process->opened) != 2)
                ;
        }
    }
    struct file *file = atomic_load(&process->file);
    /* Without a file it is missed there, and that is told. */
    if (file)
        atomic_fetch_add_explicit(&file->calls[kind], 1, memory_order_relaxed);
    errno = error;
}

/* What finds the functions behind these may allocate; that is never given back. */
static _Alignas(16) char room[16384];
static _Atomic size_t taken;
static int finding;

static int is_first(const void *block) { return (uintptr_t)block - (uintptr_t)room < sizeof room; }

static void *first(size_t size) {
    size_t at = atomic_fetch_add(&taken, (size + 15) & ~(size_t)15);
    if (at + size > sizeof room)
        abort();
    return room + at;
}

static void *(*next_malloc)(size_t);
static void *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);
static void *(*next_reallocarray)(void *, size_t, size_t);
static void *(*next_memalign)(size_t, size_t);
static void *(*next_aligned_alloc)(size_t, size_t);
static int (*next_posix_memalign)(void **, size_t, size_t);
static void *(*next_valloc)(size_t);
static void *(*next_pvalloc)(size_t);
static size_t (*next_usable_size)(void *);
static void (*next_free)(void *);

/* Whether the functions are known; not while they are looked up. */
static int found(void) {
    if (next_free)
        return 1;
    if (finding)
        return 0;
    finding = 1;
    next_malloc = dlsym(RTLD_NEXT, "malloc");
    next_calloc = dlsym(RTLD_NEXT, "calloc");
    next_realloc = dlsym(RTLD_NEXT, "realloc");
    next_reallocarray = dlsym(RTLD_NEXT, "reallocarray");
    next_memalign = dlsym(RTLD_NEXT, "memalign");
    next_aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
    next_posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
    next_valloc = dlsym(RTLD_NEXT, "valloc");
    next_pvalloc = dlsym(RTLD_NEXT, "pvalloc");
    next_usable_size = dlsym(RTLD_NEXT, "malloc_usable_size");
    next_free = dlsym(RTLD_NEXT, "free");
    return 1;
}

/* A call that is counted unless it is the allocator's own. */
#define CALL(kind, result, call)                                                                                       \
    ({                                                                                                                 \
        if (!inside)                                                                                                   \
            count(kind);                                                                                               \
        inside++;                                                                                                      \
        result = call;                                                                                                 \
        inside--;                                                                                                      \
        result;                                                                                                        \
    })

void *malloc(size_t size) {
    void *block;
    return found() ? CALL(MALLOC, block, next_malloc(size)) : first(size);
}

void *calloc(size_t count_, size_t size) {
    void *block;
    return found() ? CALL(CALLOC, block, next_calloc(count_, size)) : first(count_ * size);
}

/* A trace tells `realloc(NULL, size)` as what it is: `malloc`. */
static enum kind moves(const void *old) { return old ? REALLOC : MALLOC; }

void *realloc(void *old, size_t size) {
    void *block;
    if (!found() || is_first(old))
        abort();
    return CALL(moves(old), block, next_realloc(old, size));
}

void *reallocarray(void *old, size_t count_, size_t size) {
    void *block;
    if (!found() || is_first(old))
        abort();
    return CALL(moves(old), block, next_reallocarray(old, count_, size));
}

void *memalign(size_t align, size_t size) {
    void *block;
    return found() ? CALL(ALIGNED, block, next_memalign(align, size)) : NULL;
}

void *aligned_alloc(size_t align, size_t size) {
    void *block;
    return found() ? CALL(ALIGNED, block, next_aligned_alloc(align, size)) : NULL;
}

int posix_memalign(void **place, size_t align, size_t size) {
    int result;
    return found() ? CALL(ALIGNED, result, next_posix_memalign(place, align, size)) : ENOMEM;
}

void *valloc(size_t size) {
    void *block;
    return found() ? CALL(ALIGNED, block, next_valloc(size)) : NULL;
}

void *pvalloc(size_t size) {
    void *block;
    return found() ? CALL(ALIGNED, block, next_pvalloc(size)) : NULL;
}

size_t malloc_usable_size(void *block) {
    size_t size;
    return block && found() ? CALL(USABLE_SIZE, size, next_usable_size(block)) : 0;
}

void free(void *block) {
    int done;
    /* The recorder does not pass on `free(NULL)`. */
    if (block && found())
        CALL(FREE, done, (is_first(block) ? (void)0 : next_free(block), 0));
}

void free_sized(void *block, size_t size) {
    (void)size;
    free(block);
}

void free_aligned_sized(void *block, size_t align, size_t size) {
    (void)align;
    (void)size;
    free(block);
}
