#!/usr/bin/env python3
"""Does a replay hold as much memory as its program did, under each allocator? Does it put allocators in the same order?

    agreement.py [--touch HOW] [--runs N] [PROGRAM...]      of real-programs/; default: those that are installed, have no client and use enough memory
    agreement.py --times FOLDER [PROGRAM...]                of the pack: times, peaks, page faults, from runs in FOLDER; those that are there are not made again

Each program runs with its quick input under each allocator with agreement.c before it, which notes the highest resident heap. Its
recording is replayed in recorded order under the same libraries (`replay --retained`). Prints the peak of each, the replay's error, and
whether both have the same order of allocators that differ by more than 10 %. Of programs with several threads it is the median of N
runs [default: 5], and of the replays of as many recordings, with the least and the most of each. agreement.c delays threads, and how they
run beside each other decides how much is held: so these runs are without it, the kernel's peak less what was no heap in N runs with it, if
in those the kernel's peak was the heap's, too. Exit code
1 if the median of the errors is above 5 %, the worst above 15 %, or an order differs.

With --times: ratios over glibc of five allocators, medians of blocks, of the program and of its trace, go to traces/agreement.json,
from which `make-pack.py --page` makes the table of traces/README.md.
"""

import argparse
import glob
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import real_programs
import validity

ALLOCATORS = ["glibc", "jemalloc", "mimalloc3", "tcmalloc"]
MEDIAN, WORST, APART = 0.05, 0.15, 1.10
LEAST_BYTES = 4 << 20
SIX = ["glibc", "jemalloc", "mimalloc2", "mimalloc3", "snmalloc", "tcmalloc"]
BLOCKS = 6
FIGURES = pathlib.Path(__file__).resolve().parent.parent / "traces/agreement.json"
HERE = os.path.dirname(os.path.abspath(__file__))


def programs(names):
    """The data of these programs, or of all that can be compared here."""
    can = lambda program: real_programs.is_installed(program) and "client" not in program
    found = real_programs.load().items()
    return {name: program for name, program in found if name in names or (not names and can(program))}


class Place:
    def __init__(self, heapmark, folder):
        self.heapmark, self.folder = heapmark, folder
        self.probe = os.path.join(folder, "agreement.so")
        source = os.path.join(HERE, "agreement.c")
        subprocess.run(["cc", "-O2", "-fno-builtin", "-shared", "-fPIC", "-o", self.probe, source], check=True)

    def input(self, program):
        """A new folder with the program's input."""
        folder = tempfile.mkdtemp(dir=self.folder)
        real_programs.generate(program, program["quick"], folder)
        return folder

    def done(self, words, folder, environment):
        """The kernel's peak of its largest process."""
        with tempfile.TemporaryFile("w+") as said:
            command = subprocess.Popen(words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said)
            _, status, used = os.wait4(command.pid, 0)
            command.returncode = os.waitstatus_to_exitcode(status)
            if command.returncode:
                said.seek(0)
                raise RuntimeError(f"{' '.join(words[:2])}: {said.read().strip()[-300:]}")
        return used.ru_maxrss << 10

    def run(self, program, source, libraries):
        """The kernel's peak of a run, and what is noted of each of its processes if the probe is among the libraries."""
        folder = tempfile.mkdtemp(dir=self.folder)
        shutil.copytree(source, folder, symlinks=True, dirs_exist_ok=True)
        out = os.path.join(self.folder, "noted")
        environment = real_programs.environment(program, folder)
        environment |= {"AGREEMENT_OUT": out, "LD_PRELOAD": ":".join(libraries)}
        peak = self.done(program["run"], folder, environment)
        noted = []
        for path in glob.glob(f"{out}.*"):
            with open(path) as file:
                noted.append(tuple(int(word) for word in file.read().split()))
            os.remove(path)
        shutil.rmtree(folder)
        return peak, noted

    def own(self, program, source, library, runs):
        """The highest resident heap of each run, and the live bytes then: of the process that has the largest."""
        probed = [self.run(program, source, [self.probe, *library]) for _ in range(runs)]
        noted = [max(processes) for _, processes in probed]
        peaks = [peak for peak, _, _ in noted]
        if runs == 1:
            return peaks, noted[0][1]
        beside = statistics.median(all - peak for peak, _, all in noted)
        # Memory that is no heap (arrays on stacks) may have its own peak at another time: then the kernel's says nothing of the heap.
        misses = statistics.median(kernel - beside - peak for (kernel, _), (peak, _, _) in zip(probed, noted))
        if abs(misses) <= MEDIAN * statistics.median(peaks):
            peaks = [self.run(program, source, library)[0] - beside for _ in range(runs)]
        return peaks, statistics.median_low(live for _, live, _ in noted)

    def replayed(self, program, source, touch):
        """The highest resident heap of a replay under each allocator, and the libraries that served."""
        folder = tempfile.mkdtemp(dir=self.folder)
        shutil.copytree(source, folder, symlinks=True, dirs_exist_ok=True)
        trace, run = os.path.join(folder, "a.trace"), os.path.join(folder, "run")
        words = [self.heapmark, "record", "-q", "-o", trace, "--", *program["run"]]
        self.done(words, folder, real_programs.environment(program, folder))
        words = [self.heapmark, "replay", "-q", "--retained", "-a", ",".join(ALLOCATORS), "--blocks", "1", "--no-aa-copy", "--no-repeat"]
        self.done([*words, "--touch", touch, "-o", run, trace], folder, real_programs.environment(program, folder))
        peaks = {}
        with open(os.path.join(run, "samples.jsonl")) as lines:
            for record in map(json.loads, lines):
                # Of several threads there is a second case, in which one makes all calls.
                if record.get("memory") and record["allocator"] not in peaks:
                    memory = record["memory"]
                    points = [memory["peak_footprint"]["heap_bytes"], memory["peak_demand"]["heap_bytes"]]
                    peaks[record["allocator"]] = max(points)
        with open(os.path.join(run, "run.json")) as file:
            known = json.load(file)["allocators"]
        libraries = {it["name"]: it.get("files", []) for it in known}
        shutil.rmtree(folder)
        return peaks, libraries


def same_order(one, other):
    """Whether allocators that differ by more than APART in both are in the same order in both."""
    pairs = [(a, b) for a in ALLOCATORS for b in ALLOCATORS if one[a] > APART * one[b]]
    return all(other[a] > other[b] for a, b in pairs)


def times(heapmark, folder, names):
    """Each program of the pack beside its trace, at the size of the trace."""
    runs = validity.Runs(heapmark, folder.resolve(), None)
    figures = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    for name, program in real_programs.load().items():
        if program["role"] != "pack" or (names and name not in names):
            continue
        if not real_programs.is_installed(program):
            print(f"{name}: not installed: apt-get install {' '.join(program['packages'])}", file=sys.stderr)
            continue
        size, flags = program["pack-size"], ["-a", ",".join(SIX)]
        if "client" in program or program.get("changes-input"):
            words = ["run", "programs", "-w", f"program:{name}", "--set", f"{name}.size={size}", "--blocks", str(BLOCKS), *flags]
            ran = runs.run(f"programs/{name}", words)
        else:
            ran = validity.measure(runs, "programs", {**program, "quick": size}, BLOCKS, flags)
        words = ["run", "-w", f"trace:{name}", "--set", f"trace:{name}.rounds=first", "--blocks", str(BLOCKS), *flags]
        both = [validity.read(runs, place) for place in (ran, runs.run(f"replays/{name}", words, made_of=[FIGURES.with_name(f"{name}.trace")]))]
        figures.pop(name, None)
        if any(it not in logs for logs, _, _ in both for it in SIX[1:]):
            print(f"{name}: an allocator failed", file=sys.stderr)
            continue
        middle = lambda logs, key: {it: round(math.exp(statistics.median(pair[key] for pair in logs[it])), 4) for it in SIX[1:]}
        of = lambda key: [middle(logs, key(turns)) for logs, _, turns in both]
        figures[name] = {
            "measured": json.loads((ran / "run.json").read_text())["started"][:10],
            "time": of(lambda turns: "cpu" if turns else "wall"),
            "peak": of(lambda _: "bytes"),
            "faults": of(lambda _: "faults"),
        }
        FIGURES.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n")
        print(f"{name}: {figures[name]['time']}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--times", type=pathlib.Path, metavar="FOLDER", help="compare times and page faults of the pack instead")
    parser.add_argument("--touch", default="recorded")
    parser.add_argument("--runs", type=int, default=5, help="of a program with several threads, and recordings of it")
    parser.add_argument("--heapmark", default=os.environ.get("HEAPMARK", "target/release/heapmark"))
    arguments = parser.parse_args()
    heapmark = os.path.abspath(arguments.heapmark)
    if arguments.times:
        return times(heapmark, arguments.times, arguments.programs)
    errors, orders = [], []
    with tempfile.TemporaryDirectory() as folder:
        place = Place(heapmark, folder)
        print("| program | live at the peak | " + " | ".join(f"{name}: program, replay" for name in ALLOCATORS) + " | worst error | order |")
        print("|---|--:|" + "--:|" * len(ALLOCATORS) + "--:|---|", flush=True)
        for name, program in programs(arguments.programs).items():
            try:
                source = place.input(program)
                # With several threads a program's own memory varies.
                runs = arguments.runs if program.get("threads", 1) > 1 else 1
                replays = [place.replayed(program, source, arguments.touch) for _ in range(runs)]
                replayed = {it: [peaks[it] for peaks, _ in replays] for it in ALLOCATORS}
                replay = {it: statistics.median(replayed[it]) for it in ALLOCATORS}
                ran = {it: place.own(program, source, replays[0][1].get(it, []), runs) for it in ALLOCATORS}
            except (RuntimeError, OSError, KeyError, ValueError) as error:
                print(f"{name}: {error}", file=sys.stderr)
                continue
            own = {it: statistics.median(peaks) for it, (peaks, _) in ran.items()}
            live = ran["glibc"][1]
            if live < LEAST_BYTES and not arguments.programs:
                print(f"{name}: at most {live >> 10} KiB are live", file=sys.stderr)
                continue
            error = {it: replay[it] / own[it] - 1 for it in ALLOCATORS}
            order = same_order(own, replay)
            errors += error.values()
            orders.append(order)
            mib = lambda number: f"{number / (1 << 20):.1f}"
            span = lambda peaks: f" ({mib(min(peaks))} to {mib(max(peaks))})" if runs > 1 else ""
            cells = [f"{mib(own[it])}{span(ran[it][0])}, {mib(replay[it])}{span(replayed[it])} MiB ({100 * error[it]:+.1f} %)" for it in ALLOCATORS]
            worst = max(abs(it) for it in error.values())
            print(f"| {name} | {mib(live)} MiB | " + " | ".join(cells) + f" | {100 * worst:.1f} % | {'same' if order else 'differs'} |", flush=True)
    if not errors:
        sys.exit("agreement: no program could be compared")
    sizes = [abs(error) for error in errors]
    median, worst = statistics.median(sizes), max(sizes)
    print(f"\n{len(orders)} programs: median error {100 * median:.1f} %, worst {100 * worst:.1f} %, same order in {sum(orders)}")
    sys.exit(median > MEDIAN or worst > WORST or not all(orders))


main()
