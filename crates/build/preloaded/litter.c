/* Ages the heap of a program before its main: allocates blocks, replaces them, and frees a part in random order. Does the
 * same as crates/guest/src/litter.rs, with the same random numbers; a test compares the two. The library is preloaded
 * behind the allocator; its own tables come from mmap.
 *
 * The file HEAPMARK_LITTER begins with a line that contains the percentage of the blocks that stay, the bytes, the threads,
 * the random state, the device and inode of the program, and SIZE:WEIGHT,... After this line, each process of that program
 * writes what it did. In other processes, and with 0 bytes, the library does nothing. */
#define _GNU_SOURCE
#include "handed.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TURNOVERS = 3, HANDED_OVER = 5, BATCH = 64, MOST_SIZES = 1024, MOST_THREADS = 2 };

struct block {
    unsigned char *address;
    uint32_t size, stamp;
};

struct list {
    struct block *blocks;
    size_t length;
};

struct worker {
    struct block incoming[BATCH], outgoing[BATCH];
    atomic_int has_come;
    struct list list;
    uint64_t count, live_bytes;
};

static uint64_t stay, bytes, threads, seed;
static uint32_t sizes[MOST_SIZES], until[MOST_SIZES];
static size_t size_count, room;
static struct worker workers[MOST_THREADS];
static pthread_barrier_t meeting;
static const char *_Atomic fault;

static uint64_t next(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static uint32_t below(uint64_t *state, uint32_t bound) { return (uint32_t)(((next(state) >> 32) * bound) >> 32); }

static struct block allocate(uint64_t *random) {
    uint32_t ticket = below(random, until[size_count - 1]), place = 0;
    while (place < size_count - 1 && until[place] <= ticket) place++;
    uint32_t size = sizes[place];
    struct block block = {.size = size, .stamp = (uint32_t)next(random)};
    block.address = malloc(size);
    if (!block.address) {
        fault = "malloc returned nothing";
        return block;
    }
    volatile unsigned char *byte = block.address;
    for (size_t offset = 0; offset < size; offset += 4096) byte[offset] = (unsigned char)block.stamp;
    if (size > 1) byte[size - 1] = (unsigned char)(block.stamp >> 8);
    return block;
}

static void release(struct worker *own, struct block block) {
    if (!block.address) return;
    if (block.address[0] != (unsigned char)block.stamp ||
        (block.size > 1 && block.address[block.size - 1] != (unsigned char)(block.stamp >> 8)))
        fault = "a block was overwritten";
    own->live_bytes -= block.size;
    free(block.address);
}

static void push(struct worker *own, struct block block) {
    own->list.blocks[own->list.length++] = block;
    own->count++;
    own->live_bytes += block.size;
}

static struct block take(struct list *list, size_t place) {
    struct block block = list->blocks[place];
    list->blocks[place] = list->blocks[--list->length];
    return block;
}

static void free_incoming(struct worker *own) {
    if (!atomic_load(&own->has_come)) return;
    for (int i = 0; i < BATCH; i++) release(own, own->incoming[i]);
    atomic_store(&own->has_come, 0);
}

/* Gives a batch to the next thread, unless that thread has not freed the last batch yet. */
static void hand_over(struct worker *own, struct worker *to) {
    if (atomic_load(&to->has_come)) {
        for (int i = 0; i < BATCH; i++) release(own, own->outgoing[i]);
        return;
    }
    memcpy(to->incoming, own->outgoing, sizeof own->outgoing);
    atomic_store(&to->has_come, 1);
}

static void *scatter(void *worker) {
    struct worker *own = worker;
    uint64_t index = (uint64_t)(own - workers), state = seed, volume = 0, replaced = 0;
    uint64_t random = next(&state) ^ ((index | 1ull << 32) + 1) * 0xd1342543de82ef95;
    int going = 0;
    while (volume < bytes / threads && own->list.length < room && !fault) {
        struct block block = allocate(&random);
        volume += block.size;
        push(own, block);
    }
    while (replaced < TURNOVERS * volume && !fault) {
        size_t place = below(&random, (uint32_t)own->list.length);
        int others = threads > 1 && below(&random, HANDED_OVER) == 0;
        struct block old = take(&own->list, place);
        if (!others) {
            release(own, old);
        } else {
            own->outgoing[going++] = old;
            if (going == BATCH) {
                hand_over(own, &workers[(index + 1) % threads]);
                going = 0;
            }
        }
        free_incoming(own);
        struct block block = allocate(&random);
        replaced += block.size;
        push(own, block);
    }
    while (going > 0) release(own, own->outgoing[--going]);
    pthread_barrier_wait(&meeting);
    free_incoming(own);
    size_t left = own->list.length * stay / 100;
    while (own->list.length > left) release(own, take(&own->list, below(&random, (uint32_t)own->list.length)));
    return NULL;
}

static uint64_t number(char **text) { return strtoull(*text, text, 10); }

static double mean_size(void) {
    double sum = 0;
    for (size_t i = 0; i < size_count; i++) sum += (double)sizes[i] * (until[i] - (i ? until[i - 1] : 0));
    return sum / until[size_count - 1];
}

/* Parses the order; returns whether this process is to be aged. */
static int ordered(char *text) {
    struct stat exe;
    uint64_t sum = 0;
    stay = number(&text);
    bytes = number(&text);
    threads = number(&text);
    seed = number(&text);
    uint64_t device = number(&text), inode = number(&text);
    if (!bytes || stat("/proc/self/exe", &exe) || exe.st_dev != device || exe.st_ino != inode) return 0;
    for (char *end = text; size_count < MOST_SIZES; text = end) {
        uint64_t size = strtoull(text + (*text == ','), &end, 10);
        if (*end != ':') break;
        end++;
        sum += number(&end);
        if (size > UINT32_MAX || sum > UINT32_MAX) return 0;
        sizes[size_count] = size ? (uint32_t)size : 1;
        until[size_count++] = (uint32_t)sum;
    }
    return sum > 0 && threads >= 1 && threads <= MOST_THREADS && stay <= 100;
}

/* Returns the anonymous and shared memory that is resident, in bytes. */
static uint64_t resident(void) {
    long anonymous = status_number("\nRssAnon:"), shared = status_number("\nRssShmem:");
    return (uint64_t)((anonymous > 0 ? anonymous : 0) + (shared > 0 ? shared : 0)) << 10;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t ns(struct timeval time) { return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_usec * 1000; }

__attribute__((constructor)) static void age(void) {
    static char order[1 << 16];
    int error = errno;
    int file = handed(getenv("HEAPMARK_LITTER"), O_RDWR | O_APPEND);
    if (file < 0) return;
    uint64_t began_ns = now_ns();
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    if (pread(file, order, sizeof order - 1, 0) > 0 && ordered(order)) {
        room = (size_t)((double)(bytes / threads) / mean_size() * 1.05) + 1;
        size_t table_bytes = threads * room * sizeof(struct block);
        struct block *table =
            mmap(NULL, table_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        uint64_t resident_before = resident();
        pthread_t other;
        if (table == MAP_FAILED) {
            fault = "mmap returned nothing";
        } else {
            pthread_barrier_init(&meeting, NULL, (unsigned)threads);
            for (size_t i = 0; i < threads; i++) workers[i].list.blocks = table + i * room;
            if (threads > 1 && pthread_create(&other, NULL, scatter, &workers[1])) {
                fault = "no second thread";
            } else {
                scatter(&workers[0]);
                if (threads > 1) pthread_join(other, NULL);
            }
        }
        uint64_t grown = resident() - resident_before;
        /* Unmapping the table shows what it costs to give pages back, as the end of the process does with the pages of the
         * litter. */
        uint64_t back_ns = now_ns();
        if (table != MAP_FAILED) munmap(table, table_bytes);
        back_ns = (uint64_t)((double)(now_ns() - back_ns) * (double)grown / (double)table_bytes);
        getrusage(RUSAGE_SELF, &after);
        char line[512];
        int length = fault ? snprintf(line, sizeof line, "fault=%s\n", fault)
                           : snprintf(line, sizeof line, "litter=%lu %lu %lu %lu %lu %lu %lu %lu %lu\n", began_ns, now_ns(),
                                      ns(after.ru_utime) - ns(before.ru_utime), ns(after.ru_stime) - ns(before.ru_stime),
                                      after.ru_minflt - before.ru_minflt, workers[0].count + workers[1].count,
                                      workers[0].live_bytes + workers[1].live_bytes, grown, back_ns);
        if (write(file, line, (size_t)length) < 0) line[0] = 0;
    }
    close(file);
    errno = error;
}
