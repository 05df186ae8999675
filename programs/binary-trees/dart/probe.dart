// What the probing process (--probe) times. The runtime does not tell a program how long its collections took.

import 'dart:io';

class Probe {
  final _clock = Stopwatch()..start(); // monotonic
  final _longest = <int, int>{}; // building, in ticks of the clock, by depth

  // Is build(depth); the longest one of each depth is kept.
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
