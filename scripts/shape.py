#!/usr/bin/env python3
"""Do the small presets keep the shape? Runs each workload of the reference documents at quick and at paper
size, and compares the two rankings of six allocators. `make shape` does it for all; some hours.

    shape.py [WORKLOAD...]         run these (default: all), then compare
    shape.py --rows QUICK PAPER    compare two exports (heapmark export RUN --to csv-rows) instead, and run nothing

A pair of allocators counts if one is more than 15 % slower than the other at both sizes. An allocator's rank is the number of counted
pairs in which it is the slower one minus the number in which it is the faster one; Spearman's coefficient of these ranks must be at
least 0.8. Exit code 1 if it is not. If no pair counts, there is no order to compare.

At least one block; up to seven for processes of less than a second, since the time of a single process of milliseconds
depends on the pages that it happened to get.

Left out, with a message: cases of which a size would take longer than --minutes for all allocators (one process of the baseline and one
check, timed), and those whose two presets are the same work.
"""

import argparse
import collections
import csv
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time

ALLOCATORS = ["glibc", "jemalloc", "mimalloc3", "snmalloc", "rpmalloc", "tcmalloc"]
APART = math.log(1.15)
BAR = 0.8
COLUMNS = {"time": "ns_per_op", "cpu": "cpu_ns_per_op"}
MOST_BLOCKS = 7
# The most time for the blocks of a size, beyond the first.
SECONDS = 60


def coefficient(quick, paper):
    """Spearman's coefficient of two {allocator: ns per operation}, and the number of pairs that counted; None for no pair."""
    names = sorted(quick.keys() & paper.keys())
    ranks = {name: [0, 0] for name in names}
    pairs = 0
    for place, one in enumerate(names):
        for other in names[:place]:
            apart = [math.log(times[one] / times[other]) for times in (quick, paper)]
            if min(map(abs, apart)) > APART:
                pairs += 1
                for size, by in enumerate(apart):
                    ranks[one][size] += 1 if by > 0 else -1
                    ranks[other][size] -= 1 if by > 0 else -1
    # All ranks add up to 0.
    product = sum(q * p for q, p in ranks.values())
    squares = [sum(rank[size] ** 2 for rank in ranks.values()) for size in (0, 1)]
    if not all(squares):
        # Every counted pair is cancelled by another one with the opposite order.
        return (0.0 if pairs else None), pairs
    return product / math.sqrt(squares[0] * squares[1]), pairs


def read(lines, column):
    """{case: {allocator: ns per operation}} of an export."""
    cases = collections.defaultdict(dict)
    for row in csv.DictReader(lines):
        if row["allocator"] in ALLOCATORS and row[column]:
            cases[f"{row['workload']}@{row['threads']}"][row["allocator"]] = float(row[column])
    return cases


def told(case, quick, paper):
    """Prints the line of a case; returns whether it passes."""
    found, pairs = coefficient(quick, paper)
    for size, times in (("quick", quick), ("paper", paper)):
        base = times.get("glibc", math.nan)
        ratios = (f"{name} {times[name] / base:.2f}" for name in sorted(times, key=times.get))
        print(f"    {size}: glibc {base:.4g} ns/op; {', '.join(ratios)}")
    missing = [name for name in ALLOCATORS if name not in quick or name not in paper]
    without = f", without {', '.join(missing)}" if missing else ""
    if found is None:
        print(f"{case}: no two allocators are 15 % apart at both sizes{without}", flush=True)
        return len(missing) < 2
    word = "ok" if found >= BAR else f"BELOW {BAR}"
    print(f"{case}: {found:.2f} over {pairs} pairs{without}: {word}", flush=True)
    return found >= BAR and len(missing) < 2


class Heapmark:
    """The heapmark program, with a folder for its runs."""

    def __init__(self, arguments, folder):
        self.program, self.threads, self.column = arguments.heapmark, arguments.threads, COLUMNS[arguments.by]
        self.folder = folder

    def json(self, *words):
        return json.loads(subprocess.run([self.program, *words, "--format", "json"], check=True, capture_output=True).stdout)

    def flags(self, workload, preset, blocks):
        # A thread count that follows from parameters cannot be chosen.
        threads = [] if workload["threads"] else ["-t", self.threads]
        return ["run", "-w", workload["name"], "--preset", preset, *threads, "-a", ",".join(ALLOCATORS),
                "--blocks", str(blocks), "--no-aa-copy", "--no-floor"]

    def rows(self, workload, preset, blocks):
        """The times of a run."""
        run = os.path.join(self.folder, f"{workload['name']}-{preset}")
        end = subprocess.run([self.program, *self.flags(workload, preset, blocks), "-o", run], capture_output=True, text=True)
        # 4: some rows failed; told() names the missing ones.
        if end.returncode not in (0, 4):
            sys.exit(f"shape: {workload['name']} ({preset}): {end.stderr}")
        out = subprocess.run([self.program, "export", run, "--to", "csv-rows"], check=True, capture_output=True, text=True)
        return read(out.stdout.splitlines(), self.column)

    def cell(self, workload, preset):
        """The first timed process of the baseline, and its case; a large block has several parts, each with one: `CASE/b00.0/glibc`."""
        command = [self.program, *self.flags(workload, preset, 1), "--dry-run", "--cells"]
        plan = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        cell = next(line.split("  ")[0] for line in plan.splitlines() if re.match(r"\S+/b00\S*/glibc  ", line))
        return cell, cell.split("/")[0]

    def seconds(self, workload, preset, cell, limit):
        """The time of one process; infinite if it exceeds `limit`."""
        began = time.monotonic()
        # `timeout` ends it by SIGTERM, so that heapmark ends what it has started; --timeout is of timed processes only.
        command = ["timeout", str(limit), self.program, *self.flags(workload, preset, 1), "--cell", cell]
        end = subprocess.run(command, capture_output=True, text=True)
        took = time.monotonic() - began
        if end.returncode != 0 and took < limit:
            sys.exit(f"shape: {cell}: {end.stdout}{end.stderr}")
        return took if end.returncode == 0 else math.inf


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD")
    parser.add_argument("--rows", nargs=2, metavar=("QUICK", "PAPER"))
    parser.add_argument("--heapmark", default=os.environ.get("HEAPMARK", "target/release/heapmark"))
    parser.add_argument("--threads", default="1", help="thread count (1)")
    parser.add_argument("--minutes", type=float, default=10, help="the most that a size of a case may take (10)")
    parser.add_argument("--by", choices=COLUMNS, default="time", help="what ranks; cpu for a busy machine (time)")
    arguments = parser.parse_args()
    if arguments.rows:
        quick, paper = (read(open(path, encoding="utf-8"), COLUMNS[arguments.by]) for path in arguments.rows)
        passed = [told(case, quick[case], paper[case]) for case in sorted(quick.keys() & paper.keys())]
        sys.exit(0 if passed and all(passed) else 1)
    with tempfile.TemporaryDirectory() as folder:
        heapmark = Heapmark(arguments, folder)
        workloads = {one["name"]: one for one in heapmark.json("list", "workloads")}
        unknown = [name for name in arguments.workloads if name not in workloads]
        if unknown:
            sys.exit(f"shape: no workload {', '.join(unknown)}: see `heapmark list workloads`")
        sys.exit(0 if all([holds(heapmark, workloads[name], arguments) for name in arguments.workloads or workloads]) else 1)


def holds(heapmark, workload, arguments):
    """Whether a workload's presets rank alike; true if there is nothing to rank."""
    name = workload["name"]
    values = [[one[size] for one in workload["parameters"].values()] for size in ("quick", "paper")]
    if not (workload["kernel"] or workload["program"]):
        print(f"{name}: left out: no allocator runs it")
        return True
    if values[0] == values[1] and workload["rounds"]["quick"] == workload["rounds"]["paper"]:
        print(f"{name}: left out: both presets are the same work")
        return True
    # Each allocator has a check and a block.
    share = arguments.minutes * 60 / len(ALLOCATORS)
    rows = {}
    for preset in ("paper", "quick"):
        cell, case = heapmark.cell(workload, preset)
        check = heapmark.seconds(workload, preset, f"{case}/check/glibc", share)
        timed = heapmark.seconds(workload, preset, cell, share) if check < share else math.inf
        if check + timed > share:
            print(f"{case}: left out: its {preset} size takes more than {arguments.minutes:g} minutes", flush=True)
            return True
        blocks = max(1, min(MOST_BLOCKS, int(SECONDS / (len(ALLOCATORS) * timed))))
        rows[preset] = heapmark.rows(workload, preset, blocks).get(case, {})
    return told(case, rows["quick"], rows["paper"])


if __name__ == "__main__":
    main()
