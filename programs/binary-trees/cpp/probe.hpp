// The command line and the probe. With --probe building and releasing of every tree is timed, otherwise no clock is read.

#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <sys/mman.h>

class Probe {
public:
    static constexpr int min_depth = 4, deepest = 40;

    Probe(int argc, char **argv) {
        on = argc == 3 && std::strcmp(argv[2], "--probe") == 0;
        const char *word = argc >= 2 ? argv[1] : "";
        bool digits = *word != '\0' && std::strspn(word, "0123456789") == std::strlen(word);
        long n = digits ? std::strtol(word, nullptr, 10) : 0;
        if (n < 1 || n > deepest || (argc != 2 && !on)) {
            std::fprintf(stderr, "usage: %s N [--probe], N a depth from 1 to %d\n", argv[0], deepest);
            std::exit(2);
        }
        max = std::max(static_cast<int>(n), min_depth + 2);
        if (on)
            map_releases();
    }

    int max_depth() const { return max; }

    std::uint64_t clock() const {
        if (!on)
            return 0;
        using namespace std::chrono;
        return static_cast<std::uint64_t>(nanoseconds(steady_clock::now().time_since_epoch()).count());
    }

    void built(int depth, std::uint64_t start) {
        if (on)
            longest_build_ns[depth] = std::max(longest_build_ns[depth], clock() - start);
    }

    void released(int depth, std::uint64_t start) {
        if (!on)
            return;
        std::uint64_t ns = clock() - start;
        release_ns[releases++] = ns;
        if (ns > release_max_ns) {
            release_max_ns = ns;
            release_max_depth = depth;
        }
    }

    void report() {
        if (!on)
            return;
        std::fflush(stdout);
        for (int depth = min_depth; depth <= max; depth += 2)
            std::fprintf(stderr, "figure=depth_%d_longest_build_ns %ju\n", depth,
                         std::uintmax_t{longest_build_ns[depth]});
        std::uint64_t sum = std::accumulate(release_ns, release_ns + releases, std::uint64_t{0});
        std::uint64_t *p99 = release_ns + (releases * 99 + 99) / 100 - 1;
        std::nth_element(release_ns, p99, release_ns + releases);
        figure("releases", releases);
        figure("release_mean_ns", sum / releases);
        figure("release_p99_ns", *p99);
        figure("release_max_ns", release_max_ns);
        figure("release_max_depth", static_cast<std::uint64_t>(release_max_depth));
    }

private:
    // Not from operator new, which is measured. There are fewer than 2^(max + 1) trees.
    void map_releases() {
        std::size_t bytes = (std::size_t{2} << max) * sizeof *release_ns;
        void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped == MAP_FAILED) {
            std::perror("mmap");
            std::exit(1);
        }
        release_ns = static_cast<std::uint64_t *>(mapped);
    }

    static void figure(const char *name, std::uint64_t value) {
        std::fprintf(stderr, "figure=%s %ju\n", name, std::uintmax_t{value});
    }

    bool on = false;
    int max = 0;
    std::array<std::uint64_t, deepest + 2> longest_build_ns{};
    std::uint64_t *release_ns = nullptr; // one entry per release, for the percentile
    std::uint64_t releases = 0, release_max_ns = 0;
    int release_max_depth = 0;
};
