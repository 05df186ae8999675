// Binary trees on a conservative collector, through the interface of the Boehm-Demers-Weiser collector, which tiny-gc
// has as well. Compile-time options choose how a tree is released:
//   (nothing)      its references are dropped; the collector finds it
//   -DFREE         collection is off, and every node is freed with GC_FREE, child by child, as with malloc
//   -DINCREMENTAL  its references are dropped; marking is done in steps between allocations, and practically all
//                  collections are partial

#define GC_THREADS // newer releases start their marker threads only in programs that declare threads
#include "probe.h"
#include <dirent.h>
#include <gc.h>

struct node {
    struct node *left, *right;
};

#ifndef FREE
// A pause, as the collector reports it: the whole collection, or, if that is done in steps, its stopped end.
#ifdef INCREMENTAL
enum { PAUSE_START = GC_EVENT_MARK_START, PAUSE_END = GC_EVENT_RECLAIM_END };
#else
enum { PAUSE_START = GC_EVENT_START, PAUSE_END = GC_EVENT_END };
#endif

static void on_collection_event(GC_EventType event) {
    static uint64_t start;
    if ((int)event == PAUSE_START)
        start = probe_clock();
    else if ((int)event == PAUSE_END)
        probe_paused(start);
}
#endif

// All but the last of these calls must come before GC_INIT to have an effect.
static void start_collector(void) {
    GC_set_all_interior_pointers(0); // all pointers to nodes point to their first byte
#ifdef INCREMENTAL
    GC_set_warn_proc(GC_ignore_warn_proc);
    GC_set_handle_fork(0);
    GC_set_full_freq(1000000000);
#endif
#ifdef FREE
    GC_disable();
#else
    if (probe.on) {
        probe.collects = true;
        GC_set_on_collection_event(on_collection_event);
    }
#endif
#ifdef INCREMENTAL
    GC_enable_incremental();
#endif
    GC_INIT();
    GC_start_mark_threads(); // GC_MARKERS threads, minus the program's own; without this call, none
}

static uint64_t threads(void) {
    uint64_t found = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; tasks != NULL && (entry = readdir(tasks)) != NULL;)
        found += entry->d_name[0] != '.';
    if (tasks != NULL)
        closedir(tasks);
    return found;
}

static uint64_t cpu_ns(clockid_t clock) {
    struct timespec used;
    clock_gettime(clock, &used);
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

static void report_collector(void) {
    if (!probe.on)
        return;
    // The evidence that the collector runs with the requested settings.
    probe_figure("markers", (uint64_t)GC_get_parallel() + 1);
    probe_figure("threads", threads());
    uint64_t here = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    probe_figure("other_threads_cpu_ns", cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - here);
    probe_figure("incremental", (uint64_t)GC_is_incremental_mode());
    probe_figure("free_space_divisor", GC_get_free_space_divisor());
    probe_figure("collections", GC_get_gc_no());
    probe_figure("heap_bytes", GC_get_heap_size());
    probe_figure("free_bytes", GC_get_free_bytes());
}

static struct node *build(int depth) {
    struct node *left = NULL, *right = NULL;
    if (depth > 0) {
        left = build(depth - 1);
        right = build(depth - 1);
    }
    struct node *node = GC_MALLOC(sizeof *node);
    if (node == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    node->left = left;
    node->right = right;
    return node;
}

static long checksum(const struct node *node) {
    return node->left == NULL ? 1 : 1 + checksum(node->left) + checksum(node->right);
}

#ifdef FREE
static void release(struct node *node) {
    if (node->left != NULL) {
        release(node->left);
        release(node->right);
    }
    GC_FREE(node);
}
#endif

static long build_check_release(int depth) {
    uint64_t start = probe_clock();
    struct node *tree = build(depth);
    probe_built(depth, start);
    long check = checksum(tree);
#ifdef FREE
    start = probe_clock();
    release(tree);
    probe_released(depth, start);
#endif
    return check;
}

int main(int argc, char **argv) {
    int max = probe_arguments(argc, argv);
    start_collector();

    printf("stretch tree of depth %d\t check: %ld\n", max + 1, build_check_release(max + 1));

    struct node *long_lived = build(max);

    for (int depth = MIN_DEPTH; depth <= max; depth += 2) {
        long trees = 1L << (max - depth + MIN_DEPTH), sum = 0;
        for (long i = 0; i < trees; i++)
            sum += build_check_release(depth);
        printf("%ld\t trees of depth %d\t check: %ld\n", trees, depth, sum);
    }

    printf("long lived tree of depth %d\t check: %ld\n", max, checksum(long_lived));
    probe_report(max);
    report_collector();
}
