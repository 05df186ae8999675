#!/usr/bin/env python3
"""Records the real programs of the pack that are installed here, and writes their table: makes traces/ anew.

    make-pack.py [-o DIR] [NAME...]      default: all of the pack, into traces/; HEAPMARK names the program
    make-pack.py [-o DIR] --page         records nothing, writes the page only

For each program it generates the input in a temporary folder, records the program there, keeps the trace of the process with the most
events, at most MOST_EVENTS of them, and then cuts the largest traces until all together have at most MOST_BYTES. Their metadata name no
user, host, process, date, processor or kernel. Exit code 1 if any installed program could not be recorded, or none is installed.
"""

import argparse
import glob
import json
import os
import re
import shlex
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zlib

import real_programs

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
HEAPMARK = os.path.abspath(os.environ.get("HEAPMARK", os.path.join(ROOT, "target/release/heapmark")))
MOST_EVENTS, MOST_BYTES = 3_000_000, 8_000_000
# How long a server may take before it takes connections.
PATIENCE_S = 30
# All that a trace of the pack tells of its recording: everything else could name the machine.
KEPT = ["begin", "clock", "cut.events", "end", "end.peak-rss-bytes", "end.thp-disabled", "page-bytes", "thp"]
PAGE = """# Traces of real programs

Made by `scripts/make-pack.py` from generated inputs (programs/README.md); {traces} traces, {bytes} bytes. Sizes and lifetimes: median / 99th percentile; a lifetime is how many bytes were allocated meanwhile. No allocator takes less than the peak of live bytes; beside it is a packing of the blocks that exists, without headers and with all lifetimes known, and its size over that peak: not the best one (docs/TRACES.md). How much replays of such programs hold beside the programs themselves: docs/TRACES.md#is-it-the-programs-memory.

| trace | package | events | threads | sizes | lifetimes | peak of live bytes | a packing | bytes of the file |
|---|---|---|---|---|---|---|---|---|
"""


# Of replay and program, first round and size of the trace.
AGREEMENT = """
## Is it the program's order?

Time over glibc's in the program and in its replay, medians of 6 pairs (`scripts/agreement.py --times DIR`, {measured}); the rank correlation of both, glibc among the six; least and largest peak RSS and page faults over glibc's, program; replay. Below a rank correlation of 0.8 a trace is marked: it does not stand for the times of its program.

"""
# Where the slowest takes less than this times the fastest, ranks are chance.
FLAT, LEAST_ORDER = 1.12, 0.8


def heapmark(*words):
    return real_programs.ran([HEAPMARK, *words])


def stats(trace):
    return json.loads(heapmark("trace", "stats", "--to", "json", trace))


def record(program, folder):
    """The trace of the program's process with the most events, with metadata for the pack."""
    source, traces = os.path.join(folder, "input"), os.path.join(folder, "traces")
    os.mkdir(source)
    os.mkdir(traces)
    real_programs.generate(program, program["pack-size"], source)
    how = {"cwd": source, "env": real_programs.environment(program, source)}
    main = os.path.join(traces, "main.trace")
    words = [HEAPMARK, "record", "--children", "-o", main, *program["run"]]
    if "client" in program:
        serve(words, program["client"], how)
    else:
        real_programs.ran(words, **how)
    made = {path: stats(path) for path in [main, *glob.glob(os.path.join(traces, "*.children/*.trace"))] if os.path.exists(path)}
    if not made:
        raise RuntimeError("nothing was recorded")
    recorded = max(made, key=lambda path: made[path]["events"])
    head = {"real-program": program["name"], "package": f"{program['packages'][0]} {version(program)}"}
    head |= {key: nameless(word, folder) for key, word in made[recorded]["head"].items() if key.startswith("argv.")}
    return {"program": program, "recorded": recorded, "head": head, "events": made[recorded]["events"]}


def serve(words, client, how):
    """Records a server, which ends when its client has."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    of_port = lambda words: [word.replace("{port}", str(port)) for word in words]
    with tempfile.TemporaryFile("w+") as said:
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        server = subprocess.Popen(of_port(words), stderr=said, **quiet, **how)
        try:
            began = time.monotonic()
            while socket.socket().connect_ex(("127.0.0.1", port)):
                if server.poll() is not None or time.monotonic() > began + PATIENCE_S:
                    said.seek(0)
                    raise RuntimeError(f"the server takes no connections: {said.read()[-300:]}")
                time.sleep(0.02)
            real_programs.ran(of_port(client), **how)
        finally:
            # heapmark passes this on to the server.
            server.terminate()
            server.wait()


def version(program):
    """The version of the package, if the program is the package's: another one may come first in `PATH`."""
    path = shutil.which(program["run"][0]) or ""
    if os.path.dirname(path) not in ["/usr/bin", "/usr/sbin", "/bin", "/sbin"]:
        return "of unknown version"
    words = ["/usr/bin/dpkg-query", "-W", "-f=${Version}", program["packages"][0]]
    return subprocess.run(words, capture_output=True, text=True).stdout or "of unknown version"


def nameless(word, folder):
    """A word of the command line without paths of this machine.

    >>> words = ["/tmp/a/x/input/a.c", "-o/tmp/a/x/b", "/home/me/bin/perl", "/usr/lib/gcc/cc1plus", "work.pl"]
    >>> [nameless(word, "/tmp/a") for word in words]
    ['a.c', 'b', 'perl', '/usr/lib/gcc/cc1plus', 'work.pl']
    """
    is_of_user = word.startswith("/") and not word.startswith("/usr/")
    return word.rsplit("/", 1)[-1] if is_of_user or folder in word else word


def keep(made, trace, most_events):
    """Writes the first events of a recording, with its metadata for the pack."""
    shutil.copy(made["recorded"], trace)
    if made["events"] > most_events:
        heapmark("trace", "cut", "--force", "--events", f"0..{most_events}", "-o", trace, made["recorded"])
    told = stats(trace)
    made["kept_events"] = told["events"]
    rewrite_head(trace, made["head"] | {key: told["head"][key] for key in KEPT if key in told["head"]})


def rewrite_head(trace, head):
    """Replaces the metadata of a trace, which are its first chunk (docs/FORMAT.md)."""
    with open(trace, "rb") as file:
        content = file.read()
    (stored,) = struct.unpack_from("<I", content, 40 + 32)
    plain = lambda byte: chr(byte) if 32 <= byte < 127 and byte != ord("%") else f"%{byte:02x}"
    lines = [f"{key}={''.join(map(plain, value.encode()))}\n" for key, value in sorted(head.items())]
    text = "".join(lines).encode()
    header = struct.pack("<4sBBHQQIIIII", b"chnk", 1, 0, 0, 0, 0, 0, len(text), len(text), zlib.crc32(text), 0)
    header += struct.pack("<I", zlib.crc32(header))
    with open(trace, "wb") as file:
        file.write(content[:40] + header + text + content[40 + 48 + stored :])


def share(sizes, most_bytes):
    """The most bytes of one trace: what the small ones leave is shared by the others.

    >>> share([10, 2, 10], 12), share([10, 10], 12), share([1, 2, 3], 6) == MOST_BYTES
    (5, 6, True)
    """
    for place, size in enumerate(sorted(sizes)):
        part = most_bytes // (len(sizes) - place)
        if size > part:
            return part
        most_bytes -= size
    return MOST_BYTES


def shorten(made, most_bytes):
    """Cuts the largest traces until all together have at most so many bytes."""
    most = share([os.path.getsize(trace) for trace in made], most_bytes)
    for trace, one in made.items():
        while (size := os.path.getsize(trace)) > most:
            # A little less than in proportion: the first events may take more bytes than the rest.
            keep(one, trace, int(one["kept_events"] * most / size * 0.99))


def printed(size):
    """Three significant digits of a size in bytes."""
    power = min(int(size).bit_length() - 1, 39) // 10 if size >= 1 else 0
    value = size / 1024**power
    decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{decimals}f} {['B', 'KiB', 'MiB', 'GiB'][power]}"


def quantiles(buckets):
    count = sum(bucket["count"] for bucket in buckets)

    def quantile(share):
        left = max(-(-count * share // 100), 1)
        for bucket in buckets:
            left -= bucket["count"]
            if left <= 0:
                return printed(round(bucket["mean"]))
        return "-"

    return f"{quantile(50)} / {quantile(99)}"


def row(name, trace):
    told, size = stats(trace), os.path.getsize(trace)
    plan = heapmark("replay", "--dry-run", "--cells", "--retained", "--packing", "-a", "glibc", trace)
    packed = int(re.search(r"packed_bytes=(\d+)", plan)[1])
    live = told["peak_live_bytes"]
    columns = [name, told["head"].get("package", ""), told["events"], len(told["threads"]), quantiles(told["sizes"])]
    columns += [quantiles(told["lifetimes_bytes"]), printed(live), f"{printed(packed)} ({packed / max(live, 1):.2f}x)", size]
    return "| " + " | ".join(map(str, columns)) + " |\n"


def ranks(values):
    """Their places, equals alike."""
    return [sum(other < value for other in values) + sum(other == value for other in values) / 2 for value in values]


def order(program, replay):
    """Spearman's rank correlation of two rows of ratios over glibc's, and what to think of it.

    >>> order({"a": 0.9, "b": 0.5, "c": 1.2}, {"a": 0.8, "b": 0.6, "c": 1.1})
    (1.0, '')
    >>> order({"a": 0.9, "b": 0.5, "c": 1.2}, {"a": 1.1, "b": 1.3, "c": 0.9})
    (-1.0, 'another order')
    >>> order({"a": 1.01, "b": 1.02, "c": 0.98}, {"a": 0.7, "b": 0.6, "c": 0.9})[1]
    'hardly differs in the program'
    """
    names = sorted(program)
    both = [[1.0] + [row[name] for name in names] for row in (program, replay)]
    same = round(statistics.correlation(*map(ranks, both)), 2)
    if max(both[0]) < FLAT * min(both[0]):
        return same, "hardly differs in the program"
    return same, "" if same >= LEAST_ORDER else "another order"


def agreement(file):
    """How far the order of allocators in a replay is that of its program: scripts/agreement.py has measured it."""
    if not os.path.exists(file):
        return ""
    with open(file) as text:
        figures = json.load(text)
    names = sorted(next(iter(figures.values()))["time"][0])
    span = lambda row: f"{min(row.values()):.2f} to {max(row.values()):.2f}"
    measured = " and ".join(sorted({own["measured"] for own in figures.values()}))
    text = AGREEMENT.format(measured=measured) + f"| trace | {' | '.join(names)} | order | mark | peak RSS | page faults |\n|---{'|--:' * len(names)}|--:|---|---|---|\n"
    for name, own in sorted(figures.items()):
        same, mark = order(*own["time"])
        cells = [", ".join(f"{row[it]:.2f}" for row in own["time"]) for it in names]
        cells += [f"{same:.2f}", mark, *("; ".join(map(span, own[key])) for key in ("peak", "faults"))]
        text += f"| {name} | {' | '.join(cells)} |\n"
    return text + "\n"


def page(programs, folder):
    """The table of all traces of the catalogue in the folder."""
    paths = {name: os.path.join(folder, f"{name}.trace") for name in sorted(programs)}
    paths = {name: path for name, path in paths.items() if os.path.exists(path)}
    text = PAGE.format(traces=len(paths), bytes=sum(map(os.path.getsize, paths.values())))
    text += "".join(row(name, path) for name, path in paths.items())
    text += agreement(os.path.join(folder, "agreement.json"))
    shown = lambda words: " ".join(word if re.fullmatch(r"[\w=./:,{}-]+", word) else shlex.quote(word) for word in words)
    for name in paths:
        text += f"\n- **{name}**: {programs[name]['about']}\n\n  ```\n  {shown(programs[name]['run'])}\n  ```\n"
    return text


def write_page(programs, folder):
    text = page(programs, folder)
    with open(os.path.join(folder, "README.md"), "w") as file:
        file.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("-o", "--output", default=os.path.join(ROOT, "traces"))
    parser.add_argument("--page", action="store_true")
    arguments = parser.parse_args()
    programs = real_programs.load()
    of_pack = {name: program for name, program in programs.items() if "pack-size" in program}
    if arguments.page and arguments.names:
        parser.error("--page is about all traces: name none")
    if arguments.page:
        return write_page(of_pack, arguments.output)
    for name in arguments.names:
        if name not in of_pack:
            parser.error(f"{name} is no program of the pack: {', '.join(of_pack)}")
    chosen = [of_pack[name] for name in arguments.names or of_pack]
    there = [program for program in chosen if real_programs.is_installed(program)]
    if missing := [program for program in chosen if program not in there]:
        packages = sorted({package for program in missing for package in program["packages"]})
        names = ", ".join(program["name"] for program in missing)
        print(f"not installed: {names}; apt-get install {' '.join(packages)}", file=sys.stderr)
    if not there:
        sys.exit("no program is installed, so no trace was made")
    with tempfile.TemporaryDirectory() as scratch:
        made = {}
        for program in there:
            print(f"{program['name']}: recording", file=sys.stderr)
            folder = os.path.join(scratch, program["name"])
            os.mkdir(folder)
            try:
                one = record(program, folder)
                trace = os.path.join(scratch, f"{program['name']}.trace")
                keep(one, trace, MOST_EVENTS)
                made[trace] = one
            except (RuntimeError, OSError) as error:
                print(f"{program['name']}: not made: {error}", file=sys.stderr)
        if not made:
            sys.exit("no program could be recorded, so no trace was made")
        os.makedirs(arguments.output, exist_ok=True)
        target = lambda name: os.path.join(arguments.output, f"{name}.trace")
        names = {one["program"]["name"] for one in made.values()}
        others = [target(name) for name in of_pack if name not in names]
        shorten(made, MOST_BYTES - sum(os.path.getsize(path) for path in others if os.path.exists(path)))
        for trace, one in made.items():
            shutil.copy(trace, target(one["program"]["name"]))
    write_page(programs, arguments.output)
    sys.exit(len(made) < len(there))


if __name__ == "__main__":
    main()
