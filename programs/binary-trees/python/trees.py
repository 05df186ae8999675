"""Binary trees in Python. A tree is released immediately, node by node, with its last reference; the collector of cycles
also runs, finds nothing, and takes time. Nodes come from Python's own pools, not from malloc: 48 bytes,
a header for the collector, one for the object, and two references.
"""

import sys


class Node:
    __slots__ = ("left", "right")

    def __init__(self, left, right):
        self.left = left
        self.right = right

    def check(self):
        if self.left is None:
            return 1
        return 1 + self.left.check() + self.right.check()


def build(depth):
    if depth == 0:
        return Node(None, None)
    left = build(depth - 1)
    right = build(depth - 1)
    return Node(left, right)


def run(n, probe):
    min_depth = 4
    max_depth = max(n, min_depth + 2)
    stretch = max_depth + 1
    tree = build(stretch)
    print(f"stretch tree of depth {stretch}\t check: {tree.check()}")
    if probe:
        probe.releasing(stretch)
    del tree
    if probe:
        probe.released()
    long_lived = build(max_depth)
    for depth in range(min_depth, max_depth + 1, 2):
        iterations = 2 ** (max_depth - depth + min_depth)
        total = 0
        for _ in range(iterations):
            tree = probe.timed(build, depth) if probe else build(depth)
            total += tree.check()
            if probe:
                probe.releasing(depth)
            del tree
            if probe:
                probe.released()
        print(f"{iterations}\t trees of depth {depth}\t check: {total}")
    print(f"long lived tree of depth {max_depth}\t check: {long_lived.check()}")


def main():
    words = sys.argv[1:]
    probing = words[1:] == ["--probe"]
    if not (len(words) == 1 or probing) or not words[0].isdecimal():
        sys.exit("usage: trees.py N [--probe], where N is a whole number")
    probe = None
    if probing:
        from probe import Probe

        probe = Probe()
    run(int(words[0]), probe)
    if probe:
        probe.report()


if __name__ == "__main__":
    main()
