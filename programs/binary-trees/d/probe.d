// The timings of the probing process (--probe): buildings by the clock. The collector always counts its pauses.

module probe;

import core.memory : GC;
import core.time : Duration, MonoTime;
import std.algorithm : max;
import std.stdio : stderr;

struct Probe {
    private bool probing; // if not, no clock is read
    private Duration[64] longest; // by depth

    this(bool probing) {
        this.probing = probing;
    }

    /// Calls `build(depth)`, and keeps the longest time of each depth.
    auto timed(alias build)(int depth) {
        if (!probing)
            return build(depth);
        const start = MonoTime.currTime;
        auto tree = build(depth);
        longest[depth] = max(longest[depth], MonoTime.currTime - start);
        return tree;
    }

    /// Prints the figures to stderr.
    void report() {
        void figure(string name, long value) {
            stderr.writefln("figure=%s %d", name, value);
        }

        foreach (depth, duration; longest)
            if (duration > Duration.zero)
                stderr.writefln("figure=depth_%d_longest_build_ns %d", depth, duration.total!"nsecs");
        const collector = GC.profileStats;
        const total = collector.totalPauseTime.total!"nsecs";
        figure("pauses", collector.numCollections);
        if (collector.numCollections > 0)
            figure("pause_mean_ns", total / collector.numCollections);
        figure("pause_max_ns", collector.maxPauseTime.total!"nsecs");
        figure("pause_total_ns", total);
    }
}
