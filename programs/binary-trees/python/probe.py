"""The timings of the probing process (--probe): buildings, releases, and the pauses of the collector of cycles, which may
occur during a building. Releases are not pauses.
"""

import gc
import sys
from time import monotonic_ns


class Probe:
    def __init__(self):
        self.longest_ns = {}  # of building, by depth
        self.releases_ns = []
        self.longest_release = (0, 0)  # ns, depth
        self.pauses_ns = []
        gc.callbacks.append(self.collecting)

    def collecting(self, phase, _):
        if phase == "start":
            self.pause_start = monotonic_ns()
        else:
            self.pauses_ns.append(monotonic_ns() - self.pause_start)

    def timed(self, build, depth):
        """Calls build(depth), and keeps the longest time of each depth."""
        start = monotonic_ns()
        tree = build(depth)
        self.longest_ns[depth] = max(self.longest_ns.get(depth, 0), monotonic_ns() - start)
        return tree

    def releasing(self, depth):
        self.release_depth = depth
        self.release_start = monotonic_ns()

    def released(self):
        ns = monotonic_ns() - self.release_start
        self.releases_ns.append(ns)
        self.longest_release = max(self.longest_release, (ns, self.release_depth))

    def report(self):
        """Prints the figures to stderr."""
        gc.callbacks.remove(self.collecting)
        for depth, ns in self.longest_ns.items():
            figure(f"depth_{depth}_longest_build_ns", ns)
        releases = sorted(self.releases_ns)
        figure("releases", len(releases))
        figure("release_mean_ns", sum(releases) // len(releases))
        figure("release_p99_ns", releases[-(-len(releases) * 99 // 100) - 1])
        figure("release_max_ns", self.longest_release[0])
        figure("release_max_depth", self.longest_release[1])
        figure("pauses", len(self.pauses_ns))
        if self.pauses_ns:
            figure("pause_mean_ns", sum(self.pauses_ns) // len(self.pauses_ns))
        figure("pause_max_ns", max(self.pauses_ns, default=0))
        figure("pause_total_ns", sum(self.pauses_ns))


def figure(name, value):
    print(f"figure={name} {value}", file=sys.stderr)
