#!/usr/bin/env python3
"""What turns do to an answer: programs alone and in turns of several lengths, all in random order.

    turns.py measure FOLDER HOURS   adds runs to FOLDER for about so long
    turns.py table FOLDER           docs/METHODOLOGY.md, "Taking turns"

Wants jemalloc, mimalloc2, mimalloc3, snmalloc and tcmalloc built, and g++, jq, perl, python3 and sqlite3 on PATH. HEAPMARK is
the heapmark that measures [default: target/release/heapmark].
"""
import collections, json, math, os, pathlib, random, statistics, subprocess, sys, time

HEAPMARK = os.environ.get("HEAPMARK", str(pathlib.Path(__file__).parent.parent / "target/release/heapmark"))
COPY = "(copy)"
ALLOCATORS = "glibc,jemalloc,mimalloc2,mimalloc3,snmalloc,tcmalloc"
# The lengths of turns in milliseconds, none: alone; and blocks of a run.
WAYS = {"alone": ([], 24), "slices": ([10, 20, 50, 100], 12), "stop": ([20, 80], 8)}
OBJECTS = "d = {}\nfor i in range(250000):\n    d['k%d' % (i * 7919 % 60007)] = [i, str(i)]\nprint(sum(len(v[1]) for v in d.values()))\n"
DOCUMENT = "import json\nrows = [{'id': i, 'name': 'n%d' % i, 'tags': ['t%d' % (i * j % 97) for j in range(6)]} for i in range(27000)]\nprint(json.dumps(rows))\n"
UNIT = (
    "#include <functional>\n#include <map>\n#include <string>\n#include <unordered_map>\n#include <vector>\n"
    "template <int N> struct Node { std::map<std::string, std::vector<int>> of; Node<N - 1> next; };\n"
    "template <> struct Node<0> { std::string last; };\n"
    "int main() { Node<6> node; std::unordered_map<int, std::function<int(int)>> all;\n"
    "    all[1] = [&](int x) { return x + int(node.of.size()); }; return all[1](-1) + 1; }\n"
)
HASH = "my %h; for my $i (1..260000) { push @{$h{'k' . ($i * 7919 % 60007)}}, \"v$i\" } print scalar(keys %h), qq(\\n);"
TABLE = (
    "create table t(a integer primary key, b text); with recursive n(i) as (select 1 union all select i + 1 from n where i < 120000) "
    "insert into t select i, 'name ' || (i * 7919 % 60007) from n; create index x on t(b); "
    "select count(*), max(length(g)) from (select b, group_concat(a) as g from t group by b);"
)


def programs(folder):
    """Their commands, and what is set for them."""
    files = {"objects.py": OBJECTS, "document.py": DOCUMENT, "unit.cpp": UNIT}
    for name, text in files.items():
        (folder / name).write_text(text)
    document = folder / "document.json"
    with open(document, "w") as out:
        subprocess.run([sys.executable, folder / "document.py"], check=True, stdout=out)
    python = {"PYTHONMALLOC": "malloc"}
    real = os.path.realpath(sys.executable)
    return {
        "python-objects": ([real, str(folder / "objects.py")], python),
        "python-json": ([real, str(folder / "document.py")], python),
        "gxx": (["g++", "-O0", "-c", str(folder / "unit.cpp"), "-o", "/dev/null"], {}),
        "perl": (["perl", "-e", HASH], {}),
        "sqlite3": (["sqlite3", ":memory:", TABLE], {}),
        "jq": (["jq", "-c", "group_by(.tags[1]) | map(length)", str(document)], {}),
    }


def measure(folder, hours):
    folder.mkdir(parents=True, exist_ok=True)
    commands = programs(folder)
    end = time.monotonic() + hours * 3600
    while time.monotonic() < end:
        units = [(name, way) for name in commands for way in WAYS]
        random.shuffle(units)
        for name, way in units:
            if time.monotonic() > end:
                break
            command, environment = commands[name]
            lengths, blocks = WAYS[way]
            lengths = ",".join(map(str, lengths))
            turns = ["--turns", f"{way}={lengths}"] if lengths else []
            run = folder / "runs" / f"{name}.{way}.{time.time_ns()}"
            flags = ["-a", ALLOCATORS, "--blocks", str(blocks), "--no-repeat", "--name", name, "-o", str(run)]
            done = subprocess.run(
                [HEAPMARK, "try", *flags, *turns, "--", *command],
                env={**os.environ, **environment}, cwd=folder, text=True, capture_output=True,
            )
            load = os.getloadavg()[0]
            if done.returncode:
                print(done.stderr, file=sys.stderr)
            print(f"{time.strftime('%H:%M:%S')} load {load:.1f} {name}: {way}, exit code {done.returncode}", flush=True)


def shift(values):
    """Hodges and Lehmann's estimate of the centre."""
    return statistics.median((one + other) / 2 for place, one in enumerate(values) for other in values[place:])


def logs(folder):
    """Log ratios of CPU time for program, allocator and (way, length)."""
    found = collections.defaultdict(list)
    for file in sorted((folder / "runs").glob("*/samples.jsonl")):
        program, way, _ = file.parent.name.split(".")
        parts = collections.defaultdict(dict)
        for line in file.open():
            record = json.loads(line)
            if record["purpose"] != "sample" or "measurement" not in record:
                continue
            measured = record["measurement"]
            done = sum(it["ops"] for it in measured["iterations"])
            cpu = sum(it["user_ns"] + it["sys_ns"] for it in measured["iterations"])
            turns = measured.get("turns")
            if (turns is None) != (way == "alone"):
                continue
            length = turns["slice_ns"] // 1_000_000 if turns else 0
            parts[record["block"], record.get("part", 0), length][record["allocator"]] = cpu / done
        for (_, _, length), cells in parts.items():
            for name, ns in cells.items():
                if name != "glibc" and "glibc" in cells:
                    found[program, name, (way, length)].append(math.log(ns / cells["glibc"]))
    return found


def table(folder):
    found = logs(folder)
    ways = sorted({key[2] for key in found})
    heads = [way if not length else f"{way} {length} ms" for way, length in ways]
    pairs = sorted({key[:2] for key in found if not key[1].endswith(COPY)})

    def row(*cells):
        print("| " + " | ".join(cells) + " |")

    def percent(value):
        return f"{100 * value:.1f}"

    def deviation(pair, way):
        values = found.get((*pair, way), [])
        return statistics.stdev(values) if len(values) > 2 else math.nan

    print("Ratio, its standard error and the standard deviation of one log ratio, in per cent:\n")
    row("program", "allocator", *heads)
    row("---", "---", *["--:"] * len(ways))
    for pair in sorted({key[:2] for key in found}):
        cells = []
        for way in ways:
            values = found.get((*pair, way), [])
            error = deviation(pair, way) / math.sqrt(max(len(values), 1))
            ratio = f"{math.exp(shift(values)):.3f}" if values else "-"
            cells.append(f"{ratio} ± {percent(error)}, sd {percent(deviation(pair, way))}")
        row(*pair, *cells)
    print("\nStandard deviation of one log ratio in per cent, of A/A and the median of the allocators:\n")
    row("program", *heads)
    row("---", *["--:"] * len(ways))
    for program in sorted({key[0] for key in found}):
        cells = []
        for way in ways:
            own = [deviation(pair, way) for pair in pairs if pair[0] == program]
            copy = [deviation(pair, way) for pair in {key[:2] for key in found} if pair[0] == program and pair[1].endswith(COPY)]
            cells.append(f"{percent(copy[0])}, {percent(statistics.median(own))}" if copy else "-")
        row(program, *cells)
    print("\nOver all pairs:\n")
    row("", "duets or blocks of a pair", "variance alone / here", "ratio against alone", "largest difference")
    row("---", "--:", "--:", "--:", "---")
    alone = ("alone", 0)
    for way, head in zip(ways, heads):
        both = [pair for pair in pairs if len(found.get((*pair, way), [])) > 2 and len(found.get((*pair, alone), [])) > 2]
        if not both:
            continue
        gains = [(deviation(pair, alone) / deviation(pair, way)) ** 2 for pair in both]
        biases = {pair: shift(found[*pair, way]) - shift(found[*pair, alone]) for pair in both}
        error = 1.96 * statistics.stdev(biases.values()) / math.sqrt(len(both)) if len(both) > 1 else math.nan
        worst = max(both, key=lambda pair: abs(biases[pair]))
        row(
            head,
            f"{statistics.median(len(found[*pair, way]) for pair in both):.0f}",
            f"{statistics.median(gains):.0f}",
            f"{100 * statistics.mean(biases.values()):+.1f} ± {percent(error)} %",
            f"{100 * biases[worst]:+.1f} % ({' '.join(worst)})",
        )


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["measure", folder, hours]:
            measure(pathlib.Path(folder).absolute(), float(hours))
        case ["table", folder]:
            table(pathlib.Path(folder).absolute())
        case _:
            sys.exit(__doc__)
