#!/usr/bin/env python3
"""Does the default run's answer hold for real programs? Runs each installed program of real-programs/ under the main
allocators (heapmark try), beside it the default run, the suite that was the default before, and the reference suites;
prints what following each of their answers costs, and writes docs/VALIDITY.md. `make validity` does it: about three
hours on 2 CPUs with all programs.

    validity.py [NAME...]              some programs only
    validity.py --judge FOLDER [...]   judge the runs that are in the folder; what is not there is not run
    validity.py --values FILE          judge these values (JSON), and run nothing

Regret: how much more time a program takes with the recommended allocator than with its own best one. The best one is
chosen on every other block and compared on the rest, then the other way round: chosen and compared on the same blocks,
the best of many equals would look better than it is. With few blocks it comes out too small: docs/VALIDITY.md says why.
"""

import argparse
import collections
import csv
import datetime
import io
import itertools
import json
import math
import os
import pathlib
import random
import shlex
import shutil
import socket
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BASELINE = "glibc"
SEED = 1
RESAMPLES = 1000
# Pairs of allocators further apart than this many standard errors have a clear order in a program.
CLEAR = 2.5

# The answers that are compared, with the runs that give them.
ANSWERS = {
    "default run": ["run"],
    "default run of before": [
        "run", "-w", "same-thread,same-thread-reuse,larson-mimalloc-bench,cross-vector", "-t", "1,all", "--preset", "quick",
        "--target-ms", "150",
    ],
    # A geometric mean over all their cases needs no more than a block.
    "reference suites": ["run", "references", "--preset", "quick", "--blocks", "1", "-t", "1,all"],
}

Program = collections.namedtuple("Program", "name about in_pack in_malloc logs bytes")


def centre(values):
    """The median of all means of two: the Hodges-Lehmann estimate."""
    pairs = itertools.combinations_with_replacement(values, 2)
    return statistics.median((a + b) / 2 for a, b in pairs)


def halves(blocks):
    """Every other block, and the rest."""
    return blocks[::2], blocks[1::2]


class Scores:
    """ln of each allocator's time over the baseline's on both halves of the blocks."""

    def __init__(self, logs, blocks):
        self.of = [{name: centre([own[b] for b in half]) for name, own in logs.items()} for half in blocks]

    def regret(self, name, rivals):
        """ln of the time with an allocator over that with the best of the rivals."""
        costs = []
        for chosen_on, compared_on in (self.of, self.of[::-1]):
            best = min(rivals, key=chosen_on.get)
            costs.append(compared_on[name] - compared_on[best])
        return statistics.mean(costs)


def regrets(programs, names, drawn=lambda blocks: blocks):
    """{allocator: [its regret in each program, 0.1 for 10 % more time]}."""
    found = {name: [] for name in names}
    for program in programs:
        rivals = [name for name in program.logs if name in names and not is_copy(name)]
        scores = Scores(program.logs, [drawn(half) for half in halves(common_blocks(program.logs))])
        for name in names:
            if name in program.logs:
                found[name].append(math.expm1(scores.regret(name, rivals)))
    return found


def common_blocks(logs):
    """The blocks in which all have a value."""
    return sorted(set.intersection(*(set(own) for own in logs.values())))


def interval(programs, names, seed=SEED):
    """{allocator: 95 % interval of its mean regret}: programs and their blocks drawn again and again."""
    draw = random.Random(seed)
    means = {name: [] for name in names}
    again = lambda blocks: draw.choices(blocks, k=len(blocks))
    for _ in range(RESAMPLES):
        for name, costs in regrets(again(programs), names, again).items():
            if costs:
                means[name].append(statistics.mean(costs))
    ends = {}
    for name, of_name in means.items():
        of_name.sort()
        if of_name:
            ends[name] = (of_name[int(0.025 * len(of_name))], of_name[int(0.975 * len(of_name))])
    return ends


def kendall(order, logs):
    """Kendall's tau of an order, {allocator: any number}, with a program's, over pairs with a clear order there; and how
    many there are."""
    names = sorted(set(order) & set(logs))
    agree = pairs = 0
    for one, other in itertools.combinations(names, 2):
        blocks = sorted(logs[one].keys() & logs[other].keys())
        apart = [logs[one][b] - logs[other][b] for b in blocks]
        error = statistics.stdev(apart) / math.sqrt(len(apart)) if len(apart) > 1 else math.inf
        if abs(statistics.mean(apart)) > CLEAR * error:
            pairs += 1
            agree += 1 if (order[one] - order[other]) * statistics.mean(apart) > 0 else -1
    return (agree / pairs if pairs else None), pairs


def is_copy(name):
    return name.endswith("+copy")


class Heapmark:
    """The heapmark program, with a folder for its runs."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def run(self, name, words, folder=None, environment=None):
        """A run of that name; one that is there already is taken as it is."""
        place = self.folder / name
        if not (place / "run.json").exists():
            command, *flags = words
            code = subprocess.run(
                [self.program, command, "-o", place, *flags], cwd=folder, env=environment, stdout=subprocess.DEVNULL
            ).returncode
            # 4: some allocator failed, which its row says.
            if code not in (0, 4):
                sys.exit(f"{name}: heapmark ended with {code}")
        return place

    def export(self, place, format):
        command = [self.program, "export", place, "--to", format]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def catalogue():
    try:
        import tomllib
    except ImportError:
        sys.exit("validity.py reads TOML: it needs Python 3.11 or later")
    files = sorted((ROOT / "real-programs").glob("*/program.toml"))
    return [(file.parent, tomllib.loads(file.read_text())) for file in files]


def absent(entry):
    """What must be installed for it."""
    path = "/usr/sbin:/usr/bin:/sbin:/bin"
    return [need for need in entry["needs"] if not shutil.which(need, path=path)]


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return str(server.getsockname()[1])


def measure(heapmark, folder, entry, blocks):
    """Generates a program's input and runs it under the main allocators."""
    inputs = heapmark.folder / "inputs" / entry["name"]
    shutil.rmtree(inputs, ignore_errors=True)
    shutil.copytree(folder, inputs)
    environment = {key: value for key, value in os.environ.items() if key.startswith("HEAPMARK_") or key == "HOME"}
    environment |= {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"} | entry.get("environment", {})
    size = str(entry["quick"])
    subprocess.run([*entry["generate"], str(SEED), size], cwd=inputs, env=environment, check=True)
    words = ["try", "--name", entry["name"], "--blocks", str(blocks)]
    if entry.get("check-output"):
        words.append("--check-output")
    if "client" in entry:
        port = free_port()
        line = lambda command: shlex.join(command).replace("{port}", port)
        words += ["--server", line(entry["run"]), "--client", line(entry["client"]), "--ready", port]
    else:
        words += ["--", *entry["run"]]
    heapmark.run(entry["name"], words, inputs, environment)
    shutil.rmtree(inputs)


def read(heapmark, entry):
    """A program's run: each allocator's times and memory against the baseline's."""
    place = heapmark.folder / entry["name"]
    document = json.loads(heapmark.export(place, "json"))
    case = document["analysis"]["cases"][0]
    roles = {row["allocator"]: row["role"] for row in case["rows"] if row["state"]["kind"] == "measured"}
    times, sizes = collections.defaultdict(dict), collections.defaultdict(list)
    for sample in csv.DictReader(io.StringIO(heapmark.export(place, "csv-samples"))):
        name = sample["allocator"]
        if sample["purpose"] == "sample" and roles.get(name) in ("baseline", "candidate", "aa-copy"):
            # `xz@1/b03.0/glibc`: the baseline runs in each part of a block.
            part = sample["cell"].split("/")[1]
            times[name][part] = float(sample["wall_ns"])
            sizes[name].append(float(sample["peak_rss_bytes"]))
    base = times.get(BASELINE, {})
    logs = {}
    for name, own in times.items():
        label = f"{BASELINE}+copy" if roles[name] == "aa-copy" else name
        pairs = {part: math.log(own[part] / base[part]) for part in own if part in base}
        logs[label] = {int(part[1:].split(".")[0]): log for part, log in pairs.items()}
    held = {name: statistics.median(own) for name, own in sizes.items() if roles[name] != "aa-copy"}
    in_malloc = (case["command"] or {}).get("malloc_share")
    return Program(entry["name"], entry["about"], "pack-size" in entry, in_malloc, logs, held)


def answer(heapmark, place):
    """The allocator that a run recommends, and its order of all: {allocator: ratio}."""
    analysis = json.loads(heapmark.export(place, "json"))["analysis"]
    ranking = analysis["conclusion"]
    order = {one["allocator"]: one["ratio"] for one in analysis["overall"]}
    leader = ranking.get("leader") or (min(order, key=order.get) if order else None)
    return leader, order


def percent(share):
    return f"{100 * share:+.1f} %"


def table(head, rows):
    lines = [head, ["--"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def report(programs, answers, machine):
    """The document."""
    judged = [one for one in programs if not one.in_pack]
    if not judged:
        return "No program outside the pack was measured.\n"
    # An allocator that fails in one of them can't be followed: it is left out, and named.
    names = sorted(set.intersection(*(set(one.logs) for one in judged)))
    failed = sorted({name for one in judged for name in one.logs} - set(names))
    costs, ends = regrets(judged, names), interval(judged, names)
    means = {name: statistics.mean(own) for name, own in costs.items()}
    singles = sorted((name for name in names if not is_copy(name)), key=means.get)
    words = lambda name: (
        f"{percent(means[name])} [{percent(ends[name][0])}, {percent(ends[name][1])}]",
        f"{percent(max(costs[name]))} ({judged[costs[name].index(max(costs[name]))].name})",
    )
    larger = lambda name: statistics.mean(one.bytes[name] / min(one.bytes.values()) - 1 for one in judged)
    rows = []
    for title, (leader, _) in answers.items():
        if leader in means:
            rows.append((title, leader, *words(leader), percent(larger(leader))))
        else:
            rows.append((title, leader or "none", "-", "-", "-"))
    rows.append(("staying with glibc", BASELINE, *words(BASELINE), percent(larger(BASELINE))))
    rows.append(("the best single allocator, known afterwards", singles[0], *words(singles[0]), percent(larger(singles[0]))))
    copy = f"{BASELINE}+copy"
    if copy in names:
        rows.append(("noise: glibc's copy instead of glibc", copy, *words(copy), "-"))
    parts = [
        *([f"Left out, since some program fails with them: {', '.join(failed)}."] if failed else []),
        table(["answer", "recommends", "regret, mean [95 %]", "at worst", "memory, mean"], rows),
        "## Each allocator\n\n" + table(
            ["allocator", "regret, mean [95 %]", "at worst", "memory, mean"],
            [(name, *words(name), percent(larger(name))) for name in singles],
        ),
    ]
    of_programs = []
    for one in programs:
        clear = {title: kendall(order, {k: v for k, v in one.logs.items() if not is_copy(k)}) for title, (_, order) in answers.items()}
        scores = {name: centre(list(own.values())) for name, own in one.logs.items() if not is_copy(name)}
        best = min(scores, key=scores.get)
        taus = [f"{tau:+.2f} ({pairs})" if tau is not None else "-" for tau, pairs in clear.values()]
        in_malloc = "not known" if one.in_malloc is None else f"{100 * one.in_malloc:.1f} %"
        mark = "pack" if one.in_pack else "yes"
        of_programs.append((one.name, mark, in_malloc, f"{best} {math.exp(scores[best]):.3f}", *taus))
    parts.append(
        "## Each program\n\nIn malloc: the share of its CPU time in malloc and free under glibc. Best: its time over glibc's. Kendall's tau of each answer's order with the program's, over the pairs "
        "of allocators with a clear order there (their number).\n\n"
        + table(["program", "counts", "in malloc", "best", *(f"tau, {title}" for title in answers)], of_programs)
    )
    blocks = [len(common_blocks(one.logs)) for one in judged]
    head = f"""# Does the answer predict?

Written by `make validity` on {datetime.date.today()}, {machine}.

Regret is how much more time a program takes with the allocator that an answer recommends than with the best one for that
program; the best one is chosen on every other block and compared on the rest, and the other way round. Of the programs,
those count that are not in the pack of traces:
{len(judged)} of {len(programs)}, in {" to ".join(map(str, sorted({min(blocks), max(blocks)})))} blocks each. Intervals: programs and blocks
drawn again {RESAMPLES} times; they do not contain the estimate's bias: a half of few blocks often chooses another
allocator than the best, so regrets come out too small, even below 0, which is impossible. The row *noise* should repeat
that of staying with {BASELINE}: smaller differences between other rows mean nothing. The programs also served to choose the
cases of the default run (docs/METHODOLOGY.md). Memory: peak RSS above the smallest allocator's.

"""
    return head + "\n\n".join(parts) + "\n"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("names", nargs="*", metavar="NAME", help="programs [default: all that are installed]")
    arguments.add_argument("--blocks", type=int, default=10, help="blocks of each program")
    arguments.add_argument("--runs", type=pathlib.Path, help="folder for the runs; those that are there are not made again")
    arguments.add_argument("--judge", type=pathlib.Path, metavar="FOLDER", help="only judge the runs in this folder")
    arguments.add_argument("--output", type=pathlib.Path, default=ROOT / "docs/VALIDITY.md")
    arguments.add_argument("--values", type=pathlib.Path, metavar="FILE", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.values:
        values = json.loads(given.values.read_text())
        programs = [Program(**one) for one in values["programs"]]
        for one in programs:
            for name, own in one.logs.items():
                one.logs[name] = {int(block): log for block, log in own.items()}
        print(report(programs, values["answers"], "no machine"))
        return
    stamp = datetime.datetime.now().strftime("%Y-%m-%d-%H%M%S")
    folder = (given.judge or given.runs or pathlib.Path("heapmark-results") / f"validity-{stamp}").resolve()
    heapmark = Heapmark(os.path.abspath(os.environ.get("HEAPMARK", "target/release/heapmark")), folder)
    entries = [(place, entry) for place, entry in catalogue() if not given.names or entry["name"] in given.names]
    unknown = set(given.names) - {entry["name"] for _, entry in entries}
    if unknown:
        sys.exit(f"no real program {', '.join(sorted(unknown))}: programs/README.md lists them")
    there = lambda name: (folder / name / "run.json").exists()
    if not given.judge:
        folder.mkdir(parents=True, exist_ok=True)
        packages = set()
        for place, entry in entries:
            if absent(entry):
                packages.update(entry["packages"])
                print(f"{entry['name']}: not installed: {', '.join(absent(entry))}", flush=True)
            elif not there(entry["name"]):
                print(f"{entry['name']}: measuring", flush=True)
                measure(heapmark, place, entry, given.blocks)
        if packages:
            print(f"apt-get install {' '.join(sorted(packages))}")
        for title, words in ANSWERS.items():
            print(f"{title}: measuring", flush=True)
            heapmark.run(title.replace(" ", "-"), words)
    programs = [read(heapmark, entry) for _, entry in entries if there(entry["name"])]
    places = {title: folder / title.replace(" ", "-") for title in ANSWERS}
    answers = {title: answer(heapmark, place) for title, place in places.items() if (place / "run.json").exists()}
    machine = "no run"
    for place in list(places.values()) + [folder / one.name for one in programs]:
        if (place / "run.json").exists():
            head = json.loads((place / "run.json").read_text())
            told = head["machine"]
            machine = f"{told['cpu_model']} with {told['usable_cpus']} CPUs, Linux {told['kernel']}"
            releases = dict.fromkeys(one["release"] for one in head["allocators"] if one.get("release"))
            if releases:
                machine += f". Releases: {'; '.join(releases)}"
            break
    text = report(programs, answers, machine)
    print(text)
    if not given.judge or given.output != ROOT / "docs/VALIDITY.md":
        given.output.write_text(text)


if __name__ == "__main__":
    main()
