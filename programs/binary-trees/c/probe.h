// The command line and the probe of the C programs. With --probe single steps are timed: building one tree, and
// releasing one or, with a collector, its pauses. Without --probe no clock is read.

#ifndef PROBE_H
#define PROBE_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { MIN_DEPTH = 4, DEEPEST = 40 };

static struct {
    bool on;
    uint64_t longest_build_ns[DEEPEST + 2];
    uint64_t *release_ns; // one entry per release, for the percentile
    uint64_t releases, release_max_ns;
    int release_max_depth;
    bool collects; // there are pauses to report, even if none happened
    uint64_t pauses, pause_total_ns, pause_max_ns;
} probe;

static inline uint64_t probe_clock(void) {
    if (!probe.on)
        return 0;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline void probe_built(int depth, uint64_t start) {
    if (!probe.on)
        return;
    uint64_t ns = probe_clock() - start;
    if (ns > probe.longest_build_ns[depth])
        probe.longest_build_ns[depth] = ns;
}

static inline void probe_released(int depth, uint64_t start) {
    if (!probe.on)
        return;
    uint64_t ns = probe_clock() - start;
    probe.release_ns[probe.releases++] = ns;
    if (ns > probe.release_max_ns) {
        probe.release_max_ns = ns;
        probe.release_max_depth = depth;
    }
}

static inline void probe_paused(uint64_t start) {
    if (!probe.on)
        return;
    uint64_t ns = probe_clock() - start;
    probe.pauses++;
    probe.pause_total_ns += ns;
    if (ns > probe.pause_max_ns)
        probe.pause_max_ns = ns;
}

static inline void probe_figure(const char *name, uint64_t value) {
    if (probe.on)
        fprintf(stderr, "figure=%s %" PRIu64 "\n", name, value);
}

static inline int probe_ascending(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

// Reads `N [--probe]` and returns the depth of the long-lived tree.
static inline int probe_arguments(int argc, char **argv) {
    bool probing = argc == 3 && strcmp(argv[2], "--probe") == 0;
    bool digits = argc >= 2 && argv[1][0] != '\0' && strspn(argv[1], "0123456789") == strlen(argv[1]);
    long n = digits ? strtol(argv[1], NULL, 10) : 0;
    if (n < 1 || n > DEEPEST || (argc != 2 && !probing)) {
        fprintf(stderr, "usage: %s N [--probe], N a depth from 1 to %d\n", argv[0], DEEPEST);
        exit(2);
    }
    int max = n < MIN_DEPTH + 2 ? MIN_DEPTH + 2 : (int)n;
    if (probing) {
        // Not from malloc, which is measured. There are fewer than 2^(max + 1) trees.
        size_t bytes = ((size_t)2 << max) * sizeof *probe.release_ns;
        probe.release_ns =
            mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (probe.release_ns == MAP_FAILED) {
            perror("mmap");
            exit(1);
        }
        probe.on = true;
    }
    return max;
}

static inline void probe_report(int max) {
    if (!probe.on)
        return;
    fflush(stdout);
    for (int depth = MIN_DEPTH; depth <= max; depth += 2)
        fprintf(stderr, "figure=depth_%d_longest_build_ns %" PRIu64 "\n", depth, probe.longest_build_ns[depth]);
    if (probe.releases > 0) {
        uint64_t sum = 0;
        for (uint64_t i = 0; i < probe.releases; i++)
            sum += probe.release_ns[i];
        qsort(probe.release_ns, probe.releases, sizeof *probe.release_ns, probe_ascending);
        probe_figure("releases", probe.releases);
        probe_figure("release_mean_ns", sum / probe.releases);
        probe_figure("release_p99_ns", probe.release_ns[(probe.releases * 99 + 99) / 100 - 1]);
        probe_figure("release_max_ns", probe.release_max_ns);
        probe_figure("release_max_depth", (uint64_t)probe.release_max_depth);
    }
    if (probe.collects) {
        probe_figure("pauses", probe.pauses);
        probe_figure("pause_mean_ns", probe.pauses > 0 ? probe.pause_total_ns / probe.pauses : 0);
        probe_figure("pause_max_ns", probe.pause_max_ns);
        probe_figure("pause_total_ns", probe.pause_total_ns);
    }
}

#endif
