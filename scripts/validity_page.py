"""What the values of `make validity` say: values in, page out. See validity.py for where they come from."""

import itertools
import math
import random
import statistics

from turns import shift

DRAWS = 400
BASELINE, COPY = "glibc", "glibc (copy)"
# Choices that people make without measuring.
FIXED = ["glibc", "jemalloc", "mimalloc2", "mimalloc3", "snmalloc", "tcmalloc"]
# The copy's interval must lie within this, or nothing is said; a bracket that is wider is no knowledge.
NOISE, WIDEST = 0.005, 0.02
# What the rounds of validity.py go on for: half of the intervals of the gain and of the copy. Of a true copy the estimate lies in the
# room that is left in 19 of 20 cases.
PRECISE, NARROW = 0.007, 0.0025


def t_975(freedom):
    """Student's t by its expansion in the normal quantile; right to 0.5 % from 4 degrees of freedom on."""
    z = statistics.NormalDist().inv_cdf(0.975)
    terms = [(z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384]
    return z + sum(term / freedom ** (at + 1) for at, term in enumerate(terms))


def widened(errors, units):
    """Half of a 95 % interval by a bootstrap of so few units: as `tail` of crates/stats has it."""
    return statistics.stdev(errors) * t_975(max(units - 1, 1)) * math.sqrt(units / max(units - 1, 1))


class Programs:
    """The programs that all these allocators ended well in, their estimates, and those of resamples."""

    def __init__(self, programs, clock, names, of_screening=()):
        self.clock = clock
        has = lambda one: all(len(one["confirmed"].get(name, [])) > 1 for name in [COPY, *names])
        self.all = [one for one in programs if has(one)]
        self.failed = [one["name"] for one in programs if not has(one)]
        draw = random.Random(1)
        self.blocks = [{name: self.logs(one, "confirmed", name) for name in one["confirmed"]} for one in self.all]
        for own, one in zip(self.blocks, self.all):
            if one["turns"]["screening"] == one["turns"]["confirmed"]:
                for name in of_screening:
                    own[name] = self.logs(one, "screening", name) + own[name]
            own["never"] = self.logs(one, "unhuge", names[0])
        estimates = lambda own, again: {name: shift(again(logs)) for name, logs in own.items() if logs}
        self.own = [estimates(own, list) for own in self.blocks]
        anew = lambda logs: draw.choices(logs, k=len(logs))
        self.drawn = [[estimates(own, anew) for own in self.blocks] for _ in range(DRAWS)]
        self.picks = [draw.choices(range(len(self.all)), k=len(self.all)) for _ in range(DRAWS)]

    def logs(self, one, stage, name):
        """ln of the times over the baseline's of one allocator. In turns CPU time is compared."""
        clock = "cpu" if one["turns"][stage] else self.clock
        return [pair[clock] for pair in one[stage].get(name, [])]

    def counts(self, *names):
        """Of each program the blocks that it has of each of these."""
        return [min(len(own[name]) for name in names if name != BASELINE) for own in self.blocks]

    def mean(self, of, *names):
        """A mean over programs of what these names give; half of its interval for these programs, and for programs like them."""
        own = statistics.mean(map(of, self.own, self.all))
        each = [list(map(of, drawn, self.all)) for drawn in self.drawn]
        others = [statistics.mean(row[pick] for pick in picks) for row, picks in zip(each, self.picks)]
        # A bootstrap of n blocks has (n - 1) / n of their variance. The freedom of a sum of such variances is Satterthwaite's.
        less = [count - 1 for count in self.counts(*names)]
        variances = [statistics.variance(column) * (1 + 1 / freedom) for column, freedom in zip(zip(*each), less)]
        total, squares = sum(variances), sum(variance**2 / freedom for variance, freedom in zip(variances, less))
        these = math.sqrt(total) / len(variances) * t_975(total**2 / squares) if squares else 0.0
        return own, these, widened(others, len(self.own))

    def of(self, at, name):
        """One program's estimate and half of its interval."""
        return self.own[at][name], widened([drawn[at][name] for drawn in self.drawn], len(self.blocks[at][name]))


def clock(programs):
    """Of wall and CPU time that which scatters less between equals, for programs that run alone. No candidate is looked at."""
    scatter = lambda which: statistics.mean(
        statistics.stdev([pair[which] for pair in one["confirmed"][COPY]])
        for one in programs if not one["turns"]["confirmed"] and len(one["confirmed"].get(COPY, [])) > 1
    )
    return "wall" if all(one["turns"]["confirmed"] for one in programs) else min(("wall", "cpu"), key=scatter)


def recommended(values):
    """The names of the frozen answer, each once: the fastest first."""
    names = next(iter(values["answers"].values()))["names"]
    return {name: what for what, name in reversed(names.items()) if name and name != BASELINE}, names["fastest"]


def leader_first(values):
    names, leader = recommended(values)
    return [leader, *(it for it in names if it != leader)]


def judged(values):
    """The programs as they are judged, and the noise row. The answer's first was frozen before screening, and the copy is chosen by
    nothing: their blocks of screening count, too."""
    names, leader = recommended(values)
    programs = Programs(values["programs"], clock(values["programs"]), leader_first(values), of_screening=(leader, COPY))
    if not programs.all:
        raise SystemExit(f"validity: no program has times of {leader} and of a copy of {BASELINE}")
    return programs, programs.mean(lambda own, _: own[COPY], COPY)


def why_not(noise):
    """Why nothing can be said; None if the copy of the baseline is where it must be."""
    low, high = noise[0] - noise[1], noise[0] + noise[1]
    if low <= 0 <= high and max(-low, high) <= NOISE:
        return None
    return f"not valid: glibc's own copy takes {ratio(noise[0], noise[1])} of its time, which must contain 1 and lie within {100 * NOISE:.1f} points of it"


def ratio(log, half):
    return f"{math.exp(log):.3f} [{math.exp(log - half):.3f}, {math.exp(log + half):.3f}]"


def percent(log):
    return f"{100 * math.expm1(log):+.1f} %"


def bracket(programs, leader):
    """Regret from below (against the best of screening, which may be a wrong one) and above (against the luckiest of those confirmed), per
    program, and half of the interval of each mean."""
    best, luckiest = {}, {}
    for own, one in zip(programs.own, programs.all):
        found = {name: shift(programs.logs(one, "screening", name)) for name in one["screening"] if name in own and name != COPY}
        best[one["name"]] = min(found | {BASELINE: 0.0}, key=(found | {BASELINE: 0.0}).get)
        rivals = {name: log for name, log in own.items() if name not in (COPY, "never")} | {BASELINE: 0.0}
        luckiest[one["name"]] = min(rivals, key=rivals.get)
    ends = []
    for rivals in (best, luckiest):
        above = lambda own, one: own[leader] - own.get(rivals[one["name"]], 0.0)
        ends.append((list(map(above, programs.own, programs.all)), programs.mean(above, leader)[1]))
    return ends


def endless(programs, leader):
    """What turns without end would add to the mean, and half of its interval: a line over 1 / length in each program that took turns."""
    each = []
    for one in programs.all:
        pairs = [(1 / pair["turn_ms"], pair["cpu"]) for pair in one["confirmed"][leader] if "turn_ms" in pair and one["turns"]["confirmed"]]
        often = sorted({often for often, _ in pairs})
        if len(often) < 2:
            each.append(0.0)
            continue
        at = lambda end: statistics.mean(log for often, log in pairs if often == end)
        each.append((at(often[0]) - at(often[-1])) / (often[-1] - often[0]) * statistics.mean(often for often, _ in pairs))
    return statistics.mean(each), statistics.stdev(each) / math.sqrt(len(each)) * t_975(len(each) - 1)


def policies(programs, leader):
    """The leader against fixed choices, with Holm's correction over them."""
    rows, elsewhere = [], []
    for name in FIXED:
        without = [one["name"] for own, one in zip(programs.own, programs.all) if name != BASELINE and name not in own]
        if without and name != leader:
            elsewhere.append((name, f"no numbers in {', '.join(without)}", "-"))
        elif name != leader:
            log, _, half = programs.mean(lambda own, _: own[leader] - own.get(name, 0.0), leader, name)
            z = abs(log) / max(half / 1.96, 1e-9)
            rows.append((name, log, half, 2 * (1 - statistics.NormalDist().cdf(z))))
    rows.sort(key=lambda row: row[3])
    worst, told = 0.0, []
    for at, (name, log, half, p) in enumerate(rows):
        worst = max(worst, min(1.0, p * (len(rows) - at)))
        told.append((name, ratio(log, half), f"{worst:.3f}" if worst >= 0.001 else "< 0.001"))
    return told + elsewhere


class Fours:
    """What orders of allocators cost: the time of their first above that of the best, over all choices of four, in each program."""

    def __init__(self, times):
        """Of the logs of each program, {allocator: ln}: those that all programs have."""
        self.names = sorted(set.intersection(*map(set, times)))
        self.times = [[own[name] for name in self.names] for own in times]
        self.fours = list(itertools.combinations(range(len(self.names)), 4))
        self.best = [[min(own[it] for it in four) for four in self.fours] for own in self.times]

    def costs(self, order):
        first = [min(four, key=order.__getitem__) for four in self.fours]
        return [statistics.mean(own[it] - best for it, best in zip(first, least)) for own, least in zip(self.times, self.best)]

    def at_random(self):
        return [
            statistics.mean(statistics.mean(own[it] for it in four) - best for four, best in zip(self.fours, least))
            for own, least in zip(self.times, self.best)
        ]


def subsets(programs, answers):
    """Mean regret of each answer's first over all choices of four allocators, by the screening of all."""
    fours = Fours([
        {name: shift(programs.logs(one, "screening", name)) for name in one["screening"] if name != COPY} | {BASELINE: 0.0}
        for one in programs.all
    ])
    costs = {title: fours.costs([answer["order"].get(name, math.inf) for name in fours.names]) for title, answer in answers.items()}
    if len(fours.times) > 1:
        others = lambda at: fours.times[:at] + fours.times[at + 1 :]
        costs["the best fixed order, by the other programs"] = [
            fours.costs([statistics.mean(logs) for logs in zip(*others(at))])[at] for at in range(len(fours.times))
        ]
    costs["one at random"] = fours.at_random()
    anywhere = set().union(*(one["screening"] for one in programs.all)) - {COPY, *fours.names}
    return {title: statistics.mean(all) for title, all in costs.items()}, sorted(anywhere)


def calibration(programs, answers):
    """Slopes of ln time on what README lets expect, the share in malloc of what the suite shows, and on placement."""
    order, placed = next(iter(answers.values()))["order"], answers.get("placement", {"order": {}})["order"]
    points = []
    for one in programs.all:
        for name in one["screening"]:
            if name in order and name in placed and name not in (COPY, BASELINE) and one["in_malloc"] is not None:
                found = shift(programs.logs(one, "screening", name))
                points.append((one["name"], one["in_malloc"] * (order[name] - 1), math.log(placed[name]), found))
    names = [one["name"] for one in programs.all]

    def slopes(drawn):
        own = [point for name in drawn for point in points if point[0] == name]
        total = lambda a, b: sum(point[a] * point[b] for point in own)
        whole = total(1, 1) * total(2, 2) - total(1, 2) ** 2
        if not whole:
            return None
        return (total(1, 3) * total(2, 2) - total(2, 3) * total(1, 2)) / whole, (total(2, 3) * total(1, 1) - total(1, 3) * total(1, 2)) / whole

    draw, own = random.Random(2), slopes(names)
    again = [found for _ in range(DRAWS) if (found := slopes(draw.choices(names, k=len(names))))]
    if not own or len(again) < 2:
        return None
    return [(own[at], widened([found[at] for found in again], len(names))) for at in (0, 1)]


def table(head, rows):
    lines = [head, ["--"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def section(values):
    """What is said of one machine."""
    names, leader = recommended(values)
    where = f"{values['date']}, {values['machine']}."
    if leader == BASELINE:
        return f"{where} The answer is to stay with {BASELINE}: nothing to judge.", True
    programs, noise = judged(values)
    refusal = why_not(noise)
    count, blocks = len(programs.all), statistics.median(programs.counts(leader))
    turns = sum(one["turns"]["confirmed"] for one in programs.all)
    about = [
        f"{where} {count} programs, none of which any choice had seen, in {blocks:.0f} blocks (median); "
        f"{turns} in turns with glibc by CPU time, {count - turns} alone by {'wall' if programs.clock == 'wall' else 'CPU'} time."
    ]
    if programs.failed:
        about.append(f"Not counted, since one of the allocators failed or has no numbers there: {', '.join(programs.failed)}.")
    if left_out := sum(one["left_out"] for one in programs.all):
        about.append(f"{left_out} rounds are left out: heapmark measured them alone, and the program's first one in turns, or the other way round.")
    if refusal:
        return "\n\n".join([about[0], f"**{refusal}.** So no number is given."]), False
    gain = programs.mean(lambda own, _: own[leader], leader)
    each = [programs.of(at, leader) for at in range(count)]
    faster, slower = sum(log + half < 0 for log, half in each), sum(log - half > 0 for log, half in each)
    worst = max(range(count), key=lambda at: each[at][0])
    # Without screening, which has chosen one of the two that are compared.
    (below, of_below), (above, of_above) = bracket(Programs(values["programs"], programs.clock, leader_first(values)), leader)
    # No regret is below 0, whatever the best of screening did later.
    width = statistics.mean(above) - max(statistics.mean(below), 0.0)
    known = "not known: the bracket is wider than 2 points" if width > WIDEST else (
        f"between {percent(statistics.mean(below))} ± {100 * of_below:.1f} (against the best of screening) and {percent(statistics.mean(above))} "
        f"± {100 * of_above:.1f} (against the best of those confirmed), at worst {percent(max(above))} in "
        f"{programs.all[above.index(max(above))]['name']}"
    )
    size = lambda name: math.exp(statistics.mean(one["bytes"][name] for one in programs.all if name in one["bytes"]))
    told = [
        f"**Following the answer ({leader}) took {ratio(*gain[:2])} of glibc's time on average,** and {size(leader):.2f} of its peak RSS. It was faster in {faster} of "
        f"{count} programs, slower in {slower}; at worst it took {math.exp(each[worst][0]):.3f} of glibc's time, in {programs.all[worst]['name']}. "
        f"Its regret is {known}.",
        *about,
    ]
    more, half = endless(programs, leader)
    if turns:
        told.append(f"Turns of a length cost caches; turns without end would change the mean by {100 * more:+.1f} ± {100 * half:.1f} %.")

    def row(what, name, key):
        log, these, others = programs.mean(lambda own, _: own[key], key)
        highest = max(range(count), key=lambda at: programs.own[at][key])
        memory = f"{size(name):.2f}" if key == name and name in programs.all[0]["bytes"] else "-"
        return what, name, ratio(log, these), ratio(log, others), f"{math.exp(programs.own[highest][key]):.3f} {programs.all[highest]['name']}", memory

    rows = [row(what, name, name) for name, what in sorted(names.items(), key=lambda it: it[0] != leader)]
    if all("never" in own for own in programs.own):
        rows.insert(1, row("without huge pages", leader, "never"))
    rows.append(row("noise", COPY, COPY))
    head = ["", "allocator", "time over glibc's: these programs", "programs in general", "worst program", "peak RSS"]
    told.append(table(head, rows))
    told.append(f"{leader} against fixed choices, programs in general (p by Holm over them):\n\n" + table(["instead of", "time of it", "p"], policies(programs, leader)))
    found, elsewhere = subsets(programs, values["answers"])
    without = f"; without {', '.join(elsewhere)}, which failed somewhere" if elsewhere else ""
    told.append(f"Of four allocators at random, the time above the best of the four, by screening (whose best is partly luck, in all rows alike){without}:\n\n"
                + table(["who is taken", "mean"], [(title, percent(log)) for title, log in sorted(found.items(), key=lambda it: it[1])]))
    if slopes := calibration(programs, values["answers"]):
        (share, one), (placed, other) = slopes
        told.append(
            f"A program's ln time grows by {share:.1f} ± {one:.1f} of what its share in malloc and the suite's ratio let expect (1: no more than that), and "
            f"by {placed:.2f} ± {other:.2f} of the ratio of suite `placement`, by screening."
        )
    per = []
    for at, one in enumerate(programs.all):
        log, half = each[at]
        in_malloc = "-" if one["in_malloc"] is None else f"{100 * one['in_malloc']:.1f} %"
        rest = [f"{math.exp(programs.own[at][name]):.3f}" for name in names if name != leader]
        per.append((one["name"], in_malloc, "turns" if one["turns"]["confirmed"] else "alone", len(programs.blocks[at][leader]), ratio(log, half), *rest,
                    f"{percent(below[at])} to {percent(above[at])}", f"{math.exp(one['bytes'].get(leader, 0.0)):.2f}"))
    told.append("## Each program\n\n" + table(["program", "in malloc", "how", "blocks", leader, *(name for name in names if name != leader), "regret", "RSS"], per))
    return "\n\n".join(told), True


def page(machines, stored):
    """The document, and whether all of it is valid; `stored` names the files that hold the values."""
    sections = [section(values) for values in machines]
    again = f"`scripts/validity.py --values {' '.join(stored)}` judges its stored values again"
    head = f"# Does the answer predict?\n\nWritten by `make validity`; {again}.\n\n"
    how = """

## How it is measured

The answer of the default run is frozen first. Then all allocators run in each program of role *test*
([programs](../programs/README.md#real-programs)) in a few blocks: *screening*. The recommended ones, common choices and the two best of
screening run again in blocks of their own, and the first of the answer, which screening does not choose, in more: these are the numbers.
Intervals: 95 %, programs and blocks drawn again, widened as for Student's t. Regret is the time above that of the program's best allocator.
It lies between two estimates: the best of screening may be a wrong one, so that the first is even below 0, where no regret can be; the
best of those confirmed is partly luck.
"""
    return head + "\n\n".join(text for text, _ in sections) + how, all(valid for _, valid in sections)
