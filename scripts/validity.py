#!/usr/bin/env python3
"""Does the default run's answer hold for programs of which no choice has seen a time? `make validity` measures them and writes
docs/VALIDITY.md: up to two hours on 2 CPUs.

    validity.py [--minutes N] FOLDER   measures what FOLDER lacks, then judges; with --minutes begins nothing after N minutes, and ends
                                       with exit code 3 if there is more to do: type the same again
    validity.py --values FILE...       judges values.json of such folders, one for each machine, and measures nothing

In this order: the answers (answers.json: nothing changes it from then on), each installed program of role test under all
allocators (screening), then in a round of all programs the answer's allocators, common choices and the two best of screening, and the
answer's first without huge pages. Then more rounds of that first and of glibc's copy, each of the program with which a second narrows
their means' intervals most, by the scatter of both, until the intervals are narrow enough or the time is over.
"""

import argparse
import collections
import csv
import functools
import hashlib
import io
import json
import math
import os
import pathlib
import re
import shlex
import shutil
import socket
import statistics
import subprocess
import sys
import time

import real_programs
import validity_page
from validity_page import BASELINE, COPY, FIXED, PRECISE

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What is written at the end, and the values that say it.
PAGE, STORED = ROOT / "docs/VALIDITY.md", ROOT / "docs/validity/test.json"
# The answers that are compared, with the runs that give them; the first is the one that is judged.
ANSWERS = {
    "default run": ["run"],
    "placement": ["run", "placement", "--blocks", "6"],
    "default run, later": ["run"],
}
# Blocks of a run: in turns, and alone, where one says less.
SCREENING, FIRST_ROUND, ROUND = (2, 3), (3, 6), (12, 24)
# No round begins after so long.
MOST_SECONDS = 118 * 60
# A program's own scatter counts as much as that of all of its kind with so many blocks.
OF_ITS_KIND = 3


class Later(Exception):
    """The minutes are over."""


class Runs:
    """The runs of a folder, each made once."""

    def __init__(self, program, folder, minutes):
        self.program, self.folder = program, folder
        self.end = time.monotonic() + 60 * minutes if minutes else math.inf
        folder.mkdir(parents=True, exist_ok=True)

    def log(self):
        """What each run took and what it was made of, by its name."""
        log = self.folder / "seconds"
        lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
        return {name: (float(seconds), made) for seconds, name, *made in lines}

    def seconds(self):
        return {name: seconds for name, (seconds, _) in self.log().items()}

    def run(self, name, words, port=None, made_of=(), **how):
        """The run of that name. One that was broken off is made anew; one of another command, heapmark or program ends this."""
        place = self.folder / name
        parts = [hashlib.sha256(file.read_bytes()).hexdigest() for file in (pathlib.Path(self.program), *made_of)]
        made = hashlib.sha256("\0".join([*words, *parts]).encode()).hexdigest()[:12]
        if place.exists():
            if self.log().get(name, (0, []))[1] not in ([], [made]):
                sys.exit(f"{place} was measured by another heapmark or command, or of another program: take a new folder, or remove it and its input")
            return place
        if time.monotonic() > self.end:
            raise Later
        print(f"{time.strftime('%H:%M:%S')} {name}", flush=True)
        draft, began = self.folder / "unfinished", time.monotonic()
        shutil.rmtree(draft, ignore_errors=True)
        command, *flags = (word.replace("{port}", port) for word in words) if port else words
        code = subprocess.run([self.program, command, "-q", "-o", draft, *flags], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **how).returncode
        # 4: some allocator failed, which its row says.
        if code not in (0, 4):
            sys.exit(f"validity: {name}: heapmark ended with {code}; the same command goes on from here")
        place.parent.mkdir(parents=True, exist_ok=True)
        draft.rename(place)
        with open(self.folder / "seconds", "a") as log:
            log.write(f"{time.monotonic() - began:.1f} {name} {made}\n")
        return place

    def export(self, place, form):
        command = [self.program, "export", place, "--to", form]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def answer(runs, place):
    """The allocators that a run names, and its order of all: {allocator: ratio}."""
    document, said = json.loads(runs.export(place, "json")), runs.export(place, "md")
    order = {one["allocator"]: one["ratio"] for one in document["analysis"]["overall"]} | {BASELINE: 1.0}
    named = lambda what: (found := re.search(rf"{what}: (\S+) \(", said)) and found[1]
    leader = document["analysis"]["conclusion"].get("leader") or min(order, key=order.get)
    return {"names": {"fastest": leader, "compromise": named("Good compromise"), "smallest": named("Smallest")}, "order": order}


def frozen(runs):
    """The answers, measured before any program: nothing changes them from then on."""
    file = runs.folder / "answers.json"
    if not file.exists():
        if (runs.folder / "screening").exists():
            sys.exit(f"validity: {runs.folder} has programs but no answers.json: take a new folder")
        answers = {title: answer(runs, runs.run(title.replace(" ", "-").replace(",", ""), words)) for title, words in ANSWERS.items()}
        draft = file.with_suffix(".draft")
        draft.write_text(json.dumps(answers, indent=1))
        draft.rename(file)
    return json.loads(file.read_text())


def measure(runs, stage, program, blocks, flags):
    """A program's run: its input is made once."""
    inputs = runs.folder / "inputs" / program["name"]
    if not inputs.exists():
        draft = runs.folder / "unfinished-input"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        real_programs.generate(program, program["quick"], draft)
        inputs.parent.mkdir(exist_ok=True)
        draft.rename(inputs)
    words = ["try", "--name", program["name"], "--blocks", str(blocks), "--budget", "30min", *flags]
    port = None
    if "client" in program:
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            port = str(server.getsockname()[1])
        words += ["--server", shlex.join(program["run"]), "--client", shlex.join(program["client"]), "--ready", "{port}"]
    else:
        words += ["--check-output"] * program.get("check-output", False) + ["--", *program["run"]]
    files = sorted(pathlib.Path(program["folder"]).iterdir())
    return runs.run(f"{stage}/{program['name']}", words, port, files, cwd=inputs, env=real_programs.environment(program, str(inputs)))


@functools.cache
def read(runs, place):
    """Of a stored run, which does not change: pairs with the baseline of the same part, as ln, {allocator: [{clock: ln}]}, page faults and peak RSS among them; share in malloc; whether in turns."""
    case = json.loads(runs.export(place, "json"))["analysis"]["cases"][0]
    parts = collections.defaultdict(lambda: collections.defaultdict(list))
    for line in csv.DictReader(io.StringIO(runs.export(place, "csv-samples"))):
        of_case = line["workload"] == case["workload"] and line["threads"] == str(case["threads"])
        if of_case and line["purpose"] == "sample" and line["counts"] == "true" and line["row_outcome"] == "ok" and line["cold"] == "false":
            parts[line["block"], line["part"]][line["allocator"]].append(line)

    def total(lines):
        sums = {key: sum(float(line[key]) for line in lines) for key in ("wall_ns", "user_ns", "sys_ns", "minor_faults", "ops")}
        each = {"wall": sums["wall_ns"], "cpu": sums["user_ns"] + sums["sys_ns"], "faults": sums["minor_faults"]}
        return {key: value / sums["ops"] for key, value in each.items()} | {"bytes": float(lines[0]["peak_rss_bytes"])}

    lengths = {}
    with open(place / "samples.jsonl") as records:
        for record in map(json.loads, records):
            if turns := (record.get("measurement") or {}).get("turns"):
                lengths[str(record["block"]), str(record.get("part", 0))] = turns["slice_ns"] / 1e6
    logs = collections.defaultdict(list)
    for key, rows in parts.items():
        base = total(rows[BASELINE]) if BASELINE in rows else None
        turn = {"turn_ms": lengths[key]} if key in lengths else {}
        for name, lines in rows.items():
            if base and name != BASELINE:
                own = total(lines)
                logs[name].append({what: round(math.log((own[what] or 1) / (base[what] or 1)), 5) for what in own} | turn)
    share = (case["command"] or {}).get("malloc_share")
    return dict(logs), share, bool(case.get("took_turns"))


def took_turns(runs, stage, name):
    return read(runs, runs.folder / stage / name)[2]


def shifts(logs, turns):
    """Of what `read` returns: the ln of each allocator's time over the baseline's, without the copy's."""
    clock = "cpu" if turns else "wall"
    return {name: validity_page.shift([pair[clock] for pair in pairs]) for name, pairs in logs.items() if name != COPY}


def added(kept, logs):
    for name, pairs in logs.items():
        kept.setdefault(name, []).extend(pairs)


def collect(runs, answers, programs, stages):
    """The values of what is measured: all that validity_page.py knows."""
    found = []
    for program in programs:
        name = program["name"]
        screening, in_malloc, _ = read(runs, runs.folder / "screening" / name)
        ways = {stage: took_turns(runs, stage, name) for stage in ("screening", "round-1", "unhuge")}
        one = {"name": name, "in_malloc": in_malloc, "screening": screening, "confirmed": {}, "unhuge": {}, "bytes": {}, "left_out": 0}
        one["turns"] = {"screening": ways["screening"], "confirmed": ways["round-1"], "unhuge": ways["unhuge"]}
        for stage in stages:
            if not (runs.folder / stage / name).exists():
                continue
            kind = "unhuge" if stage == "unhuge" else "confirmed"
            # A duet and a process alone do not measure the same: the first round decides which counts.
            if took_turns(runs, stage, name) == one["turns"][kind]:
                added(one[kind], read(runs, runs.folder / stage / name)[0])
            else:
                one["left_out"] += 1
        for allocator, pairs in one["confirmed"].items():
            one["bytes"][allocator] = round(statistics.median(pair["bytes"] for pair in pairs), 5)
        found.append(one)
    head = json.loads((runs.folder / "default-run" / "run.json").read_text())
    told, releases = head["machine"], dict.fromkeys(one["release"] for one in head["allocators"] if one.get("release"))
    pages = told.get("transparent_huge_pages", "unknown")
    machine = f"{told['cpu_model']}, {told['usable_cpus']} CPUs, Linux {told['kernel']}, huge pages {pages}; {'; '.join(releases)}"
    return {"machine": machine, "date": head["started"][:10], "answers": answers, "programs": found}


def rivals(runs, answers, program):
    """Who is confirmed: what the answer names, common choices, the two best of screening. And the blocks of a round."""
    logs, _, turns = read(runs, runs.folder / "screening" / program["name"])
    times = shifts(logs, turns)
    named = [name for name in answers["default run"]["names"].values() if name]
    chosen = dict.fromkeys([BASELINE, *named, *FIXED, *sorted(times, key=times.get)[:2]])
    # What fails in screening is not measured again.
    return [name for name in chosen if name == BASELINE or name in times], FIRST_ROUND[0 if turns else 1]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", nargs="?", type=pathlib.Path, metavar="FOLDER", help="for the runs; those that are there are not made again")
    arguments.add_argument("--minutes", type=float, help="begin nothing after so many")
    arguments.add_argument("--only", metavar="NAME,...", help="these programs; the page stays as it is")
    arguments.add_argument("--values", nargs="+", type=pathlib.Path, metavar="FILE", help="judge these, measure nothing")
    arguments.add_argument("--output", type=pathlib.Path, help="where the page goes [default: docs/VALIDITY.md; with --only stdout]")
    given = arguments.parse_args()
    if bool(given.values) == bool(given.folder):
        arguments.error("give a folder, or --values")
    output = given.output or (None if given.only or given.values else PAGE)
    if given.values:
        return finish([json.loads(file.read_text()) for file in given.values], output, given.values)
    runs = Runs(os.path.abspath(os.environ.get("HEAPMARK", "target/release/heapmark")), given.folder.resolve(), given.minutes)
    known = [program for program in real_programs.load().values() if program["role"] == "test"]
    only = given.only.split(",") if given.only else [program["name"] for program in known]
    if unknown := set(only) - {program["name"] for program in known}:
        sys.exit(f"validity: no program of role test: {', '.join(sorted(unknown))}; heapmark list programs shows them")
    chosen = [program for program in known if program["name"] in only]
    if missing := [program for program in chosen if not real_programs.is_installed(program)]:
        packages = sorted({name for program in missing for name in program["packages"]})
        sys.exit(f"validity: not installed: {', '.join(it['name'] for it in missing)}; apt-get install {' '.join(packages)}")
    try:
        values = measured(runs, chosen, further=not given.only)
    except Later:
        print(f"validity: {sum(runs.seconds().values()) / 60:.0f} minutes are measured, and there is more: type the same again")
        sys.exit(3)
    stored = runs.folder / (f"values-{given.only}.json" if given.only else "values.json")
    stored.write_text(json.dumps(values))
    finish([values], output, [STORED if output is PAGE else stored])


def measured(runs, programs, further):
    """The values, once all is measured that they need; without `further` after the first round."""
    answers = frozen(runs)
    leader = answers["default run"]["names"]["fastest"]
    for program in programs:
        alone = program["threads"] > 1 or "client" in program
        measure(runs, "screening", program, SCREENING[alone], ["-a", ",".join(answers["default run"]["order"])])
    for program in programs:
        confirm(runs, answers, program, 1)
    for program in programs:
        blocks = rivals(runs, answers, program)[1]
        measure(runs, "unhuge", program, blocks, ["-a", f"{BASELINE},{leader}", "--thp", "never", *as_before(runs, program)])
    if leader == BASELINE or not further:
        return collect(runs, answers, programs, [*rounds(runs), "unhuge"])
    while True:
        values = collect(runs, answers, programs, [*rounds(runs), "unhuge"])
        judged, noise = validity_page.judged(values)
        gain = judged.mean(lambda own, _: own[leader], leader)
        is_precise = gain[1] <= PRECISE and noise[1] <= validity_page.NARROW
        if is_precise or sum(runs.seconds().values()) > MOST_SECONDS:
            return values
        name = most_worth(runs, judged, leader)
        made = sum((runs.folder / stage / name).exists() for stage in rounds(runs))
        confirm(runs, answers, next(program for program in programs if program["name"] == name), made + 1)


def rounds(runs):
    """The stages of the confirmation that there are, the first one first."""
    return sorted((place.name for place in runs.folder.glob("round-*")), key=lambda name: int(name.split("-")[1]))


def confirm(runs, answers, program, number):
    """A round of one program: after the first only of what the headline needs."""
    if number == 1:
        names, blocks = rivals(runs, answers, program)
    else:
        names = [BASELINE, answers["default run"]["names"]["fastest"]]
        blocks = ROUND[0 if took_turns(runs, "round-1", program["name"]) else 1]
    measure(runs, f"round-{number}", program, blocks, ["-a", ",".join(names), *(as_before(runs, program) if number > 1 else [])])


def as_before(runs, program):
    """What was alone in the first round stays alone."""
    return [] if took_turns(runs, "round-1", program["name"]) else ["--alone"]


def most_worth(runs, judged, leader):
    """The program of which another round takes most from the variances of the means for its seconds, of each as much as it is to be narrowed."""
    took, found = runs.seconds(), {}
    wanted = {COPY: validity_page.NARROW, leader: PRECISE}
    variances = lambda logs: sum(statistics.variance(logs[name]) / half**2 for name, half in wanted.items())
    own = [(one, one["turns"]["confirmed"], variances(logs), count) for one, logs, count in zip(judged.all, judged.blocks, judged.counts(COPY, leader))]
    for one, turns, variance, count in own:
        name, kind = one["name"], statistics.mean(other for _, also, other, _ in own if also == turns)
        scatter = ((count - 1) * variance + OF_ITS_KIND * kind) / (count - 1 + OF_ITS_KIND)
        # The first round had more rows.
        last = [seconds for key, seconds in took.items() if key.startswith("round-") and key.endswith(f"/{name}")][-1]
        # A round that would be left out again is worth less each time.
        found[name] = scatter * (1 / count - 1 / (count + ROUND[0 if turns else 1])) / last / (1 + one["left_out"])
    return max(found, key=found.get)


def finish(machines, output, files):
    text, valid = validity_page.page(machines, [os.path.relpath(file, ROOT) for file in files])
    if output and valid:
        output.write_text(text)
        if output is PAGE:
            STORED.write_text(json.dumps(machines[0]))
    print(text)
    sys.exit(0 if valid else 1)


if __name__ == "__main__":
    main()
