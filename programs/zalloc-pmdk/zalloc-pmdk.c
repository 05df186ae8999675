// Every thread obtains zeroed blocks from one pool of persistent memory. Three ways (`mode`):
//   transaction   one transaction per block: allocate, fill with 0; the commit writes the block back
//   atomic        allocate outside any transaction, then the library's own persistent memset
//   zalloc        the library's own zeroing allocation
// The pool is in a memory file (`memory=dram`: tmpfs pages without a name, so nothing remains however this process ends)
// or in a file of the folder `pool` (`memory=device`), which must be on persistent memory. It is created, including its
// pages, before the clock starts. After the clock every block is checked, stamped and released.
//
// Job on stdin, report on stdout: docs/PROGRAMS.md.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libpmemobj.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { TYPE = 1, FAILED = 86 };
enum mode { TRANSACTION, ATOMIC, ZALLOC };

struct worker {
    pthread_t thread;
    PMEMoid *blocks;
    uint64_t end_ns, cpu_ns;
    uint64_t obtained, released; // over all iterations
    uint64_t wall_sum_ns, cpu_sum_ns; // over the measured iterations
    int error;
} __attribute__((aligned(128)));

static char job[1 << 16];
static PMEMobjpool *pool;
static enum mode mode;
static bool immediate;
static uint64_t threads, blocks, size;
static atomic_uint ready;
static pthread_barrier_t release;

static __attribute__((noreturn, format(printf, 2, 3))) void fail(const char *kind, const char *format, ...) {
    va_list words;
    va_start(words, format);
    printf("fail=%s ", kind);
    vprintf(format, words);
    printf("\n");
    fflush(stdout);
    _exit(FAILED);
}

static void phase(const char *name) {
    printf("phase=%s\n", name);
    fflush(stdout);
}

// The value of a key; lines end in NUL once the job is read.
static const char *find(const char *key) {
    size_t length = strlen(key);
    for (const char *line = job; *line; line += strlen(line) + 1)
        if (strncmp(line, key, length) == 0 && line[length] == '=') return line + length + 1;
    return NULL;
}

static const char *word(const char *key) {
    const char *value = find(key);
    if (!value) fail("error", "the job lacks `%s`", key);
    return value;
}

static uint64_t number(const char *key) {
    const char *value = word(key);
    char *end;
    uint64_t result = strtoull(value, &end, 10);
    if (end == value || *end) fail("error", "`%s=%s` is no number", key, value);
    return result;
}

static uint64_t ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

// A line `Key:  123 kB` of a file of /proc, in bytes.
static uint64_t proc_bytes(const char *path, const char *key) {
    char line[256];
    uint64_t kib = 0;
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0) kib = strtoull(line + strlen(key), NULL, 10);
    if (file) fclose(file);
    return kib << 10;
}

// The pool's file, with its pages allocated. The path is valid while the file is open.
static const char *pool_file(uint64_t bytes) {
    static char path[4096];
    int file;
    if (strcmp(word("param.memory"), "dram") == 0) {
        const char *forced = getenv("PMEM_IS_PMEM_FORCE");
        if (!forced || strcmp(forced, "1") != 0) fail("error", "PMEM_IS_PMEM_FORCE=1 is not set");
        uint64_t available = proc_bytes("/proc/meminfo", "MemAvailable:");
        if (bytes > available)
            fail("unsupported", "needs about %lu MiB, %lu MiB are available", bytes >> 20, available >> 20);
        file = memfd_create("pool", 0);
    } else {
        const char *folder = find("param.pool");
        if (!folder || !*folder) fail("absent", "no device: --set zalloc-optane.pool=FOLDER names one");
        file = open(folder, O_TMPFILE | O_RDWR, 0600);
    }
    if (file < 0 || (errno = posix_fallocate(file, 0, (off_t)bytes)) != 0)
        fail("unsupported", "no file of %lu MiB for the pool: %s", bytes >> 20, strerror(errno));
    if (strcmp(word("param.memory"), "dram") != 0) {
        // Only persistent memory can be mapped like this; a time on any other memory would have a wrong name.
        void *probe = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, file, 0);
        if (probe == MAP_FAILED) fail("unsupported", "no device: %s is no persistent memory", word("param.pool"));
        munmap(probe, 4096);
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return path;
}

static int obtain(PMEMoid *block) {
    switch (mode) {
    case TRANSACTION: {
        volatile int error = 0;
        TX_BEGIN(pool) {
            *block = pmemobj_tx_alloc(size, TYPE);
            memset(pmemobj_direct(*block), 0, size);
        } TX_ONABORT {
            error = pmemobj_tx_errno();
        } TX_END
        return error;
    }
    case ATOMIC:
        if (pmemobj_alloc(pool, block, size, TYPE, NULL, NULL) != 0) return errno;
        pmemobj_memset_persist(pool, pmemobj_direct(*block), 0, size);
        return 0;
    default:
        return pmemobj_zalloc(pool, block, size, TYPE) == 0 ? 0 : errno;
    }
}

static void *work(void *argument) {
    struct worker *self = argument;
    atomic_fetch_add(&ready, 1);
    pthread_barrier_wait(&release);
    uint64_t cpu = ns(CLOCK_THREAD_CPUTIME_ID);
    for (uint64_t i = 0; i < blocks && self->error == 0; i++) {
        self->error = obtain(&self->blocks[i]);
        self->obtained += self->error == 0;
        if (immediate && self->error == 0) {
            pmemobj_free(&self->blocks[i]);
            self->released++;
        }
    }
    self->end_ns = ns(CLOCK_MONOTONIC);
    self->cpu_ns = ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
    return NULL;
}

// One iteration, including its line of the report.
static void iterate(struct worker *workers, bool cold) {
    struct rusage before, after;
    atomic_store(&ready, 0);
    for (uint64_t t = 0; t < threads; t++)
        if (pthread_create(&workers[t].thread, NULL, work, &workers[t]) != 0)
            fail("unsupported", "thread %lu of %lu cannot be created", t + 1, threads);
    while (atomic_load(&ready) < threads) sched_yield();
    getrusage(RUSAGE_SELF, &before);
    uint64_t start = ns(CLOCK_MONOTONIC), last = start;
    pthread_barrier_wait(&release);
    for (uint64_t t = 0; t < threads; t++) pthread_join(workers[t].thread, NULL);
    getrusage(RUSAGE_SELF, &after);
    for (uint64_t t = 0; t < threads; t++) {
        if (workers[t].error == ENOMEM) fail("oom", "the pool is full");
        if (workers[t].error) fail("error", "libpmemobj: %s", strerror(workers[t].error));
        if (workers[t].end_ns > last) last = workers[t].end_ns;
        if (cold) continue;
        workers[t].wall_sum_ns += workers[t].end_ns - start;
        workers[t].cpu_sum_ns += workers[t].cpu_ns;
    }
    #define CPU_NS(field) \
        ((uint64_t)(after.field.tv_sec - before.field.tv_sec) * 1000000000 + \
         (uint64_t)((after.field.tv_usec - before.field.tv_usec) * 1000))
    printf("%s=%lu 0 %lu %lu %lu %lu\n", cold ? "cold" : "iteration", last - start, CPU_NS(ru_utime), CPU_NS(ru_stime),
           (uint64_t)(after.ru_minflt - before.ru_minflt), threads * blocks * (immediate ? 2 : 1));
}

// Checks every block: zeroed, and no other thread's. Releases them, and returns the bytes that were zero.
static uint64_t inspect(struct worker *workers) {
    uint64_t zeros = 0, stamp = 1;
    for (uint64_t t = 0; t < threads; t++) {
        for (uint64_t i = 0; i < blocks; i++, stamp++) {
            unsigned char *block = pmemobj_direct(workers[t].blocks[i]);
            for (uint64_t at = 0; at < size; at++) zeros += block[at] == 0;
            memcpy(block, &stamp, size < sizeof stamp ? size : sizeof stamp);
        }
    }
    stamp = 1;
    for (uint64_t t = 0; t < threads; t++) {
        for (uint64_t i = 0; i < blocks; i++, stamp++) {
            void *block = pmemobj_direct(workers[t].blocks[i]);
            if (memcmp(block, &stamp, size < sizeof stamp ? size : sizeof stamp) != 0)
                fail("wrong-result", "block %lu of thread %lu overlaps another", i, t);
            pmemobj_free(&workers[t].blocks[i]);
            workers[t].released++;
        }
    }
    return zeros;
}

int main(void) {
    size_t length = fread(job, 1, sizeof job - 2, stdin);
    for (size_t i = 0; i < length; i++)
        if (job[i] == '\n') job[i] = 0;
    phase("setup");
    threads = number("threads"), blocks = number("param.blocks"), size = number("param.size");
    uint64_t cold = number("cold"), all = cold + number("iterations");
    const char *name = word("param.mode");
    mode = strcmp(name, "transaction") == 0 ? TRANSACTION : strcmp(name, "atomic") == 0 ? ATOMIC : ZALLOC;
    if (mode == ZALLOC && strcmp(name, "zalloc") != 0) fail("error", "`param.mode=%s` is no mode", name);
    immediate = strcmp(word("param.free"), "immediate") == 0;
    if (size == 0) fail("unsupported", "libpmemobj has no blocks of 0 bytes");

    const char *path = pool_file(number("param.pool-bytes"));
    pool = pmemobj_create(path, "zalloc", 0, 0600);
    if (!pool) fail("error", "pmemobj_create: %s", pmemobj_errormsg());
    struct worker *workers = aligned_alloc(128, threads * sizeof *workers);
    if (!workers) fail("oom", "no memory for %lu workers", threads);
    memset(workers, 0, threads * sizeof *workers);
    for (uint64_t t = 0; t < threads; t++) {
        workers[t].blocks = malloc(blocks * sizeof(PMEMoid));
        if (!workers[t].blocks) fail("oom", "no memory for the table of blocks");
        // Its pages are allocated before the clock starts.
        memset(workers[t].blocks, 0, blocks * sizeof(PMEMoid));
    }
    pthread_barrier_init(&release, NULL, (unsigned)threads + 1);
    printf("baseline_rss_bytes=%lu\n", proc_bytes("/proc/self/smaps_rollup", "Rss:"));

    uint64_t zeros = 0;
    for (uint64_t i = 0; i < all; i++) {
        if (i == 0 || i == cold) phase(i < cold ? "cold" : "run");
        iterate(workers, i < cold);
        if (!immediate) zeros += inspect(workers);
    }
    phase("verify");
    if (pmemobj_first(pool).off != 0) fail("wrong-result", "the pool still holds objects after all were released");
    // In the positions of malloc, free, calloc and realloc; then the bytes that were zero.
    uint64_t obtained = 0, released = 0, expected = all * threads * blocks;
    for (uint64_t t = 0; t < threads; t++) obtained += workers[t].obtained, released += workers[t].released;
    bool zeroing = mode == ZALLOC;
    printf("done=%lu %lu %lu 0 %lu\n", zeroing ? 0 : obtained, released, zeroing ? obtained : 0, zeros);
    printf("expected=%lu %lu %lu 0 %lu\n", zeroing ? 0 : expected, expected, zeroing ? expected : 0,
           immediate ? 0 : expected * size);
    printf("requested_peak_bytes=%lu\n", threads * size * (immediate ? 1 : blocks));
    printf("peak_rss_bytes=%lu\n", proc_bytes("/proc/self/status", "VmHWM:"));
    double sum = 0;
    for (uint64_t t = 0; t < threads; t++) {
        printf("thread=%lu %lu\n", workers[t].wall_sum_ns, workers[t].cpu_sum_ns);
        sum += (double)workers[t].wall_sum_ns;
    }
    // The document's own figure: each thread's time from its release to its end, averaged.
    if (all > cold) printf("figure=mean_thread_ns %f\n", sum / (double)threads / (double)(all - cold));
    pmemobj_close(pool);
    phase("done");
    return 0;
}
