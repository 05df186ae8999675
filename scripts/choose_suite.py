#!/usr/bin/env python3
"""Which cases predict programs: does another set do better than suite `quick`? Only programs of role tune are run.

    choose_suite.py FOLDER        measures what FOLDER lacks, 35 minutes on 2 CPUs, writes its values.json and prints a table
    choose_suite.py values.json   the table of values

A set says an order of the allocators: that of their mean log ratios in its cases. It costs what its first takes above the best of
four allocators, on average over all fours and programs. A chosen set is judged by programs that had no part in its choice.
"""

import itertools
import json
import math
import os
import pathlib
import random
import statistics
import sys

import real_programs
import validity
import validity_page

LOADS = ["larson-mimalloc-bench", "larson-hoard", "scatter-2", "churn", "cross-vector-reuse", "same-thread-reuse"]
KERNELS = ["traverse*", "steady", "batch-order-lifo", "batch-order-random", "grow", "pair-edge", "medium", "large", "speed-malloc-free"]
SETS = ["larson-*.purge=false", "scatter-2.loops=30", "cross-vector-reuse.purge=false"]
RUNS = {
    "quick": ["run"],
    "first": ["run", "-w", "trace:*", "--set", "trace:*.rounds=first", "--blocks", "3"],
    "later": ["run", "-w", "trace:*", "--set", "trace:*.rounds=later", "--blocks", "3"],
    "loads": ["run", "-w", ",".join(LOADS), *itertools.chain(*(["--set", one] for one in SETS)), "-t", "all", "--blocks", "4"],
    "kernels": ["run", "-w", ",".join(KERNELS), "-t", "1", "--blocks", "3"],
}
MOST_CASES, DRAWS = 7, 400


def cases(runs):
    """The log ratios of each case: run, workload, {allocator: ln}."""
    found = []
    for name, words in RUNS.items():
        document = json.loads(runs.export(runs.run(name, words), "json"))
        for case in document["analysis"]["cases"]:
            times = {row["allocator"]: (row["state"].get("time") or {}).get("ratio") for row in case["rows"]}
            found.append((name, case["workload"], {it: round(math.log(one["ratio"]), 5) for it, one in times.items() if one}))
    return found


def order(logs, chosen):
    return [statistics.mean(column) for column in zip(*(logs[one] for one in chosen))]


def chosen(programs, logs, judges):
    """The set that costs least in these programs: case after case, while one more helps."""
    def cost(found):
        costs = programs.costs(order(logs, found))
        return statistics.mean(costs[it] for it in judges)

    found = []
    while len(found) < MOST_CASES:
        best = min((one for one in logs if one not in found), key=lambda one: cost([*found, one]))
        if found and cost([*found, best]) >= cost(found):
            break
        found.append(best)
    return found


def measured(runs):
    """The log ratios of all cases and of all programs."""
    every = cases(runs)
    allocators = sorted(set.union(*(set(own) for _, _, own in every)) - {validity.COPY})
    times = {}
    for program in real_programs.load().values():
        if program["role"] != "tune" or not real_programs.is_installed(program):
            continue
        place = validity.measure(runs, "tune", program, validity.SCREENING[0], ["-a", ",".join(allocators)])
        logs, _, turns = validity.read(runs, place)
        times[program["name"]] = {name: round(log, 5) for name, log in validity.shifts(logs, turns).items()} | {validity.BASELINE: 0.0}
    return {"cases": every, "programs": times}


def main():
    if len(sys.argv) != 2:
        sys.exit("choose_suite: give one folder, or its values.json")
    place = pathlib.Path(sys.argv[1]).resolve()
    if not place.is_file():
        runs = validity.Runs(os.path.abspath(os.environ.get("HEAPMARK", "target/release/heapmark")), place, None)
        values = measured(runs)
        place = place / "values.json"
        place.write_text(json.dumps(values))
    values = json.loads(place.read_text())
    programs = validity_page.Fours(list(values["programs"].values()))
    known = {(run, case): own for run, case, own in values["cases"]}
    logs = {key: [own[name] for name in programs.names] for key, own in known.items() if set(programs.names) <= set(own)}
    print(f"{len(values['programs'])} programs, {len(programs.names)} allocators, {len(logs)} cases")

    everyone, rows = range(len(values["programs"])), {"one at random": programs.at_random()}
    for run in RUNS:
        rows[f"all of {run}"] = programs.costs(order(logs, [key for key in logs if key[0] == run]))
    rows["all cases"] = programs.costs(order(logs, list(logs)))
    candidates = {key: own for key, own in logs.items() if key[0] != "quick"}
    apart = [chosen(programs, candidates, [it for it in everyone if it != left]) for left in everyone]
    rows["the best set, chosen by the other programs"] = [programs.costs(order(logs, apart[left]))[left] for left in everyone]
    whole = chosen(programs, candidates, everyone)
    rows["the best set, chosen by these programs"] = programs.costs(order(logs, whole))
    draw, quick = random.Random(1), rows["all of quick"]
    for title, own in rows.items():
        less = [it - that for it, that in zip(own, quick)]
        again = [statistics.mean(draw.choices(less, k=len(less))) for _ in range(DRAWS)]
        half = validity_page.widened(again, len(less))
        print(f"{100 * statistics.mean(own):6.2f} %, {100 * statistics.mean(less):+6.2f} ± {100 * half:4.2f} against quick: {title}")
    print("the best set:", ", ".join(" ".join(one) for one in whole))
    for cost, key in sorted((statistics.mean(programs.costs(own)), key) for key, own in logs.items()):
        print(f"{100 * cost:6.2f} %: {' '.join(key)}")


if __name__ == "__main__":
    main()
