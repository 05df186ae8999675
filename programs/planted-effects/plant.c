/* glibc's malloc with a planted effect: PLANT_NS more nanoseconds or PLANT_STEPS more steps in each call that allocates,
 * PLANT_PERCENT per cent more bytes requested, in one of PLANT_STALL_EVERY calls of malloc a sleep of PLANT_STALL_MS
 * milliseconds; and so often 256 KiB are touched that it takes PLANT_CACHE_PERCENT per cent of the steps' time. With 0 of all
 * it does the same work around the same malloc, so only the effect differs.
 *
 * The nanoseconds are a chain of multiplications, three cycles each, between the request and the allocator: the size
 * depends on it, so no CPU can overlap it with the allocator's work. The number per nanosecond is calibrated at load. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static uint32_t steps;
/* What is touched now and then, and after how many calls; 0: never. */
enum { TOUCHED = 256 * 1024, LINE = 64 };
static char touched[TOUCHED];
static unsigned long touch_every;
static size_t percent;
/* 0: no call stalls. */
static unsigned long stall_every;
static struct timespec stall;

/* Returns 0, unknown to the compiler. */
static inline size_t chain(size_t from, uint32_t count) {
    size_t x = from | 1;
    for (uint32_t i = 0; i < count; i++) {
        __asm__ volatile("" : "+r"(x));
        x *= 7919;
    }
    __asm__ volatile("" : "+r"(x));
    return x & 0;
}

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double setting(const char *name) {
    const char *value = getenv(name);
    return value ? strtod(value, NULL) : 0;
}

static void touch(void) {
    for (size_t at = 0; at < TOUCHED; at += LINE) ((volatile char *)touched)[at]++;
}

__attribute__((constructor)) static void plant(void) {
    enum { COUNT = 100000, TRIES = 20 };
    double ns = setting("PLANT_NS"), best = 1e9, touch_ns = 1e9;
    percent = (size_t)setting("PLANT_PERCENT");
    stall_every = (unsigned long)setting("PLANT_STALL_EVERY");
    long stall_ms = (long)setting("PLANT_STALL_MS");
    stall = (struct timespec){.tv_sec = stall_ms / 1000, .tv_nsec = stall_ms % 1000 * 1000000};
    /* The fastest of several tries: the CPU's time without interruptions. */
    for (int i = 0; i < TRIES; i++) {
        double start = now_ns();
        size_t zero = chain((size_t)i, COUNT);
        double took = (now_ns() - start + (double)zero) / COUNT;
        if (took < best) best = took;
    }
    steps = (uint32_t)(ns / best + setting("PLANT_STEPS") + 0.5);
    double share = setting("PLANT_CACHE_PERCENT") / 100;
    for (int i = 0; share > 0 && i < TRIES; i++) {
        double start = now_ns();
        touch();
        if (now_ns() - start < touch_ns) touch_ns = now_ns() - start;
    }
    if (share > 0) touch_every = (unsigned long)(touch_ns / (share * steps * best) + 1);
}

/* Of several threads each counts some of its calls for others: how often is near enough. */
static void touch_now_and_then(void) {
    static unsigned long calls;
    if (++calls % touch_every == 0) touch();
}

static inline size_t planted(size_t size) {
    if (__builtin_expect(touch_every > 0, 0)) touch_now_and_then();
    return size + size * percent / 100 + chain(size, steps);
}

static void stalled(void) {
    static unsigned long calls;
    if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) % stall_every == 0) nanosleep(&stall, NULL);
}

void *malloc(size_t size) {
    if (__builtin_expect(stall_every > 0, 0)) stalled();
    return __libc_malloc(planted(size));
}
void *calloc(size_t n, size_t size) { return __libc_calloc(n, n ? planted(size) : size); }
void *realloc(void *block, size_t size) { return __libc_realloc(block, planted(size)); }
void free(void *block) { __libc_free(block); }
void *memalign(size_t align, size_t size) { return __libc_memalign(align, planted(size)); }
void *aligned_alloc(size_t align, size_t size) { return __libc_memalign(align, planted(size)); }
int posix_memalign(void **block, size_t align, size_t size) {
    void *made = __libc_memalign(align, planted(size));
    if (made) *block = made;
    return made ? 0 : ENOMEM;
}
