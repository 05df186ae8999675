// Binary trees in Dart. A tree is released by becoming unreachable, for the generational collector to find: young nodes
// are copied, old ones marked concurrently by separate tasks, one with DART_VM_OPTIONS=--marker_tasks=1.
// --longlived-extra=1 builds the long-lived tree one level deeper than it prints, as published results for Dart did.

import 'dart:io';
import 'dart:math';

import 'probe.dart';

class Node {
  final Node? left, right;

  Node(this.left, this.right);

  int check() {
    final left = this.left;
    return left == null ? 1 : 1 + left.check() + right!.check();
  }
}

Node build(int depth) {
  if (depth == 0) return Node(null, null);
  final left = build(depth - 1);
  final right = build(depth - 1);
  return Node(left, right);
}

void run(int n, int extra, Probe? probe) {
  const minDepth = 4;
  final maxDepth = max(n, minDepth + 2);
  final stretch = maxDepth + 1;
  print('stretch tree of depth $stretch\t check: ${build(stretch).check()}');
  final longLived = build(maxDepth + extra);
  for (var depth = minDepth; depth <= maxDepth; depth += 2) {
    final iterations = 1 << (maxDepth - depth + minDepth);
    var sum = 0;
    for (var i = 0; i < iterations; i++) {
      final tree = probe == null ? build(depth) : probe.timed(build, depth);
      sum += tree.check();
    }
    print('$iterations\t trees of depth $depth\t check: $sum');
  }
  // The extra level is visible only in the check.
  print('long lived tree of depth $maxDepth\t check: ${longLived.check()}');
}

void main(List<String> words) {
  var n = words.isEmpty ? -1 : int.tryParse(words.first) ?? -1;
  var extra = 0;
  Probe? probe;
  for (final word in words.skip(1)) {
    switch (word) {
      case '--longlived-extra=0':
        extra = 0;
      case '--longlived-extra=1':
        extra = 1;
      case '--probe':
        probe = Probe();
      default:
        n = -1;
    }
  }
  if (n < 0) {
    stderr.writeln('usage: trees N [--longlived-extra=0|1] [--probe], where N is a whole number');
    exitCode = 2;
    return;
  }
  run(n, extra, probe);
  probe?.report();
}
