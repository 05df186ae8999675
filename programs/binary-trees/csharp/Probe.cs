// The timings of the probing process (--probe).

using System;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Text.RegularExpressions;

sealed class Probe {
    readonly long[] longest = new long[64]; // in ticks of the clock, by depth

    // Calls build(depth), and keeps the longest time of each depth.
    public T Timed<T>(Func<int, T> build, int depth) {
        long start = Stopwatch.GetTimestamp();
        T tree = build(depth);
        longest[depth] = Math.Max(longest[depth], Stopwatch.GetTimestamp() - start);
        return tree;
    }

    // Prints the figures to stderr.
    public void Report() {
        double tickNs = 1e9 / Stopwatch.Frequency;
        for (int depth = 0; depth < longest.Length; depth++) {
            if (longest[depth] > 0) Figure("depth_" + depth + "_longest_build_ns", longest[depth] * tickNs);
        }
        ReportPauses();
    }

    // Mono reports its pauses only in its own log, if the environment asks for one: `stw 1.25ms` is a stop of the world of
    // that length.
    static void ReportPauses() {
        string log = Environment.GetEnvironmentVariable("MONO_LOG_DEST");
        if (log == null) return;
        var pauses = Regex.Matches(File.ReadAllText(log), @"stw ([0-9.]+)ms").Cast<Match>()
            .Select(match => double.Parse(match.Groups[1].Value, CultureInfo.InvariantCulture) * 1e6).ToArray();
        File.Delete(log);
        Figure("pauses", pauses.Length);
        Figure("pause_mean_ns", pauses.DefaultIfEmpty().Average());
        Figure("pause_max_ns", pauses.DefaultIfEmpty().Max());
        Figure("pause_total_ns", pauses.Sum());
    }

    static void Figure(string name, double value) {
        Console.Error.WriteLine("figure=" + name + " " + value.ToString("F0", CultureInfo.InvariantCulture));
    }
}
