/* Adds up the calls of malloc and free in the file HEAPMARK_TIMES, and the nanoseconds that all of them take, for all
 * processes that share the file. Each of a thread's first calls is timed, so that the time of few calls is known, too.
 * After them, one call in 64 on average is timed, and stands for 64; the calls are chosen at random, so that no pattern of
 * the program can bias the sample. Each timed call is added at once, so that nothing remains to be done at the end of a
 * thread or process. glibc serves all calls. HEAPMARK_SLOWER_NS makes each call take that much longer, until the system's
 * clock reaches HEAPMARK_SLOWER_UNTIL_NS: a timed call waits for all calls that it stands for. */
#define _GNU_SOURCE
#include "handed.h"
#include "libc.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { FIRST = 256, EVERY = 64, CALIBRATION = 255, LONG_NS = 20000 };
enum { CALLS, NANOSECONDS, TOTALS };

static _Atomic uint64_t *totals;
static uint64_t empty_ns, slower_ns, slower_until_ns;
static __thread uint32_t left __attribute__((tls_model("initial-exec"))), drawn __attribute__((tls_model("initial-exec")));
static __thread uint32_t firsts __attribute__((tls_model("initial-exec")));
static __thread uint64_t state __attribute__((tls_model("initial-exec")));

static uint64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Returns a random number from 1 to 2 * EVERY - 1. */
static uint32_t draw(void) {
    if (!state) state = (uint64_t)(uintptr_t)&state ^ clock_ns(CLOCK_MONOTONIC);
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return 1 + (uint32_t)(state >> 32) % (2 * EVERY - 1);
}

struct timer {
    uint64_t began_ns, cpu_ns;
};

static struct timer start(void) {
    struct timer timer = {.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID)};
    timer.began_ns = clock_ns(CLOCK_MONOTONIC);
    return timer;
}

/* Returns the nanoseconds that a call took. A long call may have waited for a page or for a CPU: then the thread's CPU
 * clock is used, which is too coarse and slow for a short call. */
static uint64_t stop(const struct timer *timer) {
    uint64_t took_ns = clock_ns(CLOCK_MONOTONIC) - timer->began_ns;
    if (took_ns > LONG_NS) {
        uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - timer->cpu_ns;
        if (cpu_ns < took_ns) took_ns = cpu_ns;
    }
    return took_ns > empty_ns ? took_ns - empty_ns : 0;
}

/* Returns whether to time this call. A number that a thread draws stands for calls that it has not made yet. */
static int chosen(void) {
    if (!totals) return 0;
    if (firsts < FIRST) return 1;
    if (!drawn) left = drawn = draw();
    return --left == 0;
}

/* Waits by the thread's own clock: on a busy machine the wait must not cost the thread less time. */
static void wait_ns(uint64_t ns) {
    if (clock_ns(CLOCK_MONOTONIC) >= slower_until_ns) return;
    uint64_t until_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until_ns) {}
}

static void add(const struct timer *timer) {
    uint64_t took_ns = stop(timer);
    int is_first = firsts < FIRST;
    if (slower_ns) wait_ns(slower_ns * (is_first ? 1 : drawn));
    atomic_fetch_add_explicit(&totals[CALLS], is_first ? 1 : drawn, memory_order_relaxed);
    atomic_fetch_add_explicit(&totals[NANOSECONDS], is_first ? took_ns : EVERY * took_ns, memory_order_relaxed);
    if (is_first) {
        firsts++;
    } else {
        left = drawn = draw();
    }
}

static int ascending(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

__attribute__((constructor)) static void begin(void) {
    int file = handed(getenv("HEAPMARK_TIMES"), O_RDWR);
    if (file < 0) return;
    void *map = mmap(NULL, TOTALS * sizeof *totals, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (map == MAP_FAILED) return;
    static uint64_t empty[CALIBRATION];
    for (int i = 0; i < CALIBRATION; i++) {
        struct timer timer = start();
        empty[i] = stop(&timer);
    }
    qsort(empty, CALIBRATION, sizeof *empty, ascending);
    empty_ns = empty[CALIBRATION / 2];
    const char *slower = getenv("HEAPMARK_SLOWER_NS"), *until = getenv("HEAPMARK_SLOWER_UNTIL_NS");
    if (slower && until) slower_ns = strtoull(slower, NULL, 10), slower_until_ns = strtoull(until, NULL, 10);
    totals = map;
}

#define TIMED(call)                  \
    if (!chosen()) return call;      \
    struct timer timer = start();    \
    void *block = call;              \
    add(&timer);                     \
    return block

void *malloc(size_t size) { TIMED(__libc_malloc(size)); }
void *calloc(size_t count, size_t size) { TIMED(__libc_calloc(count, size)); }
void *realloc(void *old, size_t size) { TIMED(__libc_realloc(old, size)); }
void *memalign(size_t align, size_t size) { TIMED(__libc_memalign(align, size)); }
void *aligned_alloc(size_t align, size_t size) { TIMED(__libc_memalign(align, size)); }

void free(void *block) {
    int error = errno;
    if (!block || !chosen()) {
        __libc_free(block);
    } else {
        struct timer timer = start();
        __libc_free(block);
        add(&timer);
    }
    errno = error;
}
