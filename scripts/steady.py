#!/usr/bin/env python3
"""Does `steady` with the model of a trace rank allocators as the replay of that trace does?

    steady.py TRACE...      for instance python-json sqlite-report; traces of the pack, or files

For each trace: its model (`heapmark trace export --joint`), the replay in later rounds and `steady` with that model, and the memory of
both. A pair of allocators is clear if the intervals of their times over glibc's do not overlap; it counts if it is clear in both runs.
Kendall's tau is of those pairs: 1 if all have the same order. Of memory a pair counts if it is more than 5 % apart in both. Exit code 1 if
a tau of times is below 0.8.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile

ALLOCATORS = "glibc,jemalloc,mimalloc2,mimalloc3,tcmalloc,rpmalloc"
BAR = 0.8
APART = 1.05


class Heapmark:
    """The heapmark program, with a folder for its runs."""

    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder

    def said(self, *words):
        end = subprocess.run([self.arguments.heapmark, *words], capture_output=True, text=True)
        if end.returncode not in (0, 4):
            sys.exit(f"steady: {' '.join(words)}: {end.stderr}")
        return end.stdout

    def rows(self, name, *flags):
        """{(allocator, metric): row} of a run, and its thread count."""
        run = os.path.join(self.folder, name)
        self.said("run", *flags, "-a", self.arguments.allocators, "--no-aa-copy", "--no-floor", "-o", run)
        rows = list(csv.DictReader(self.said("export", run, "--to", "csv").splitlines()))
        return {(row["allocator"], row["metric"]): row for row in rows if row["median"]}, rows[0]["threads"]


def times(rows):
    """{allocator: (low, high)} of the time over glibc's."""
    found = {"glibc": (1.0, 1.0)}
    for (allocator, metric), row in rows.items():
        if metric == "ns_per_op" and row["low"]:
            found[allocator] = float(row["low"]), float(row["high"])
    return found


def overheads(rows, metric):
    """{allocator: (value, value * APART)}."""
    values = {name: float(row["median"]) for (name, its), row in rows.items() if its == metric}
    return {name: (value, value * APART) for name, value in values.items()}


def tau(one, other):
    """Kendall's tau over pairs that are clear in both, and how many are; None for no pair."""
    names = sorted(one.keys() & other.keys())
    order = []
    for place, left in enumerate(names):
        for right in names[:place]:
            signs = []
            for found in (one, other):
                (low, high), (low_right, high_right) = found[left], found[right]
                signs.append(1 if low > high_right else -1 if high < low_right else 0)
            if all(signs):
                order.append(signs[0] * signs[1])
    return (sum(order) / len(order) if order else None), len(order)


def line(what, rows, metric, form):
    values = {name: float(row["median"]) for (name, its), row in rows.items() if its == metric}
    told = (f"{name} {value:{form}}" for name, value in sorted(values.items(), key=lambda item: item[1]))
    print(f"    {what}: {', '.join(told)}")


def holds(heapmark, trace):
    """Prints the lines of a trace; returns whether its tau is high enough."""
    name = os.path.basename(trace).removesuffix(".trace")
    path = trace if os.path.exists(trace) else os.path.join("traces", f"{trace}.trace")
    model = os.path.join(heapmark.folder, f"{name}.csv")
    heapmark.said("trace", "export", path, "--joint", "-o", model)
    blocks = ["--blocks", str(heapmark.arguments.blocks)]
    replay = ["-w", f"trace:{trace}"]
    replayed, threads = heapmark.rows(f"{name}-replay", *replay, "--set", f"trace:{name}.rounds=later", *blocks)
    # As in the replay, blocks are not used, and only their ends are written.
    like = ["--set", "steady.use=0", "--set", "steady.touch=ends"]
    steady = ["-w", "steady", "-t", threads, "--set", f"steady.model={model}", *like]
    ran, _ = heapmark.rows(f"{name}-steady", *steady, *blocks)
    memory = ["--retained", "--blocks", "1"]
    held, _ = heapmark.rows(f"{name}-replay-memory", *replay, *memory)
    steady_held, _ = heapmark.rows(f"{name}-steady-memory", *steady, *memory)
    found, pairs = tau(times(replayed), times(ran))
    print(f"{name}@{threads}: tau {'-' if found is None else f'{found:.2f}'} over {pairs} clear pairs")
    line("ns per call, replay", replayed, "ns_per_op", ".3g")
    line("ns per birth and death, steady", ran, "ns_per_op", ".3g")
    line("mean A/L, replay", held, "mean_overhead", ".2f")
    line("mean A/L, steady", steady_held, "mean_overhead", ".2f")
    line("worst A/L, steady", steady_held, "worst_overhead", ".2f")
    of_memory, pairs = tau(overheads(held, "mean_overhead"), overheads(steady_held, "mean_overhead"))
    print(f"    mean A/L: tau {'-' if of_memory is None else f'{of_memory:.2f}'} over {pairs} pairs", flush=True)
    return found is None or found >= BAR


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", metavar="TRACE")
    parser.add_argument("--heapmark", default=os.environ.get("HEAPMARK", "target/release/heapmark"))
    parser.add_argument("--allocators", default=ALLOCATORS)
    parser.add_argument("--blocks", type=int, default=7)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        heapmark = Heapmark(arguments, folder)
        sys.exit(0 if all([holds(heapmark, trace) for trace in arguments.traces]) else 1)


if __name__ == "__main__":
    main()
