// The timings of the probing process (--probe). The runtime does not report the duration of its collections.

import 'dart:io';

class Probe {
  final _clock = Stopwatch()..start(); // monotonic
  final _longest = <int, int>{}; // building, in ticks of the clock, by depth

  // Calls build(depth), and keeps the longest time of each depth.
  T timed<T>(T Function(int) build, int depth) {
    final start = _clock.elapsedTicks;
    final tree = build(depth);
    final ticks = _clock.elapsedTicks - start;
    if (ticks > (_longest[depth] ?? 0)) _longest[depth] = ticks;
    return tree;
  }

  // Prints the figures to stderr.
  void report() {
    final tickNs = 1e9 / _clock.frequency;
    _longest.forEach((depth, ticks) {
      stderr.writeln('figure=depth_${depth}_longest_build_ns ${(ticks * tickNs).round()}');
    });
  }
}
