#!/bin/sh
# Does `heapmark tune` find what was planted, and nothing where nothing was? RUNS tunings of an allocator with knobs of +10 %, -10 %,
# +2 %, one that does nothing, a pair that helps only together and one that harms alone; then RUNS of one whose knobs do nothing. Fails
# if more than one of ten, or then more than one of twenty, says otherwise, or if the confirmed ratios are biased by more than a quarter
# of their half-width.
# Usage: scripts/planted-knobs.sh [RUNS [BUDGET [FOLDER]]]; HEAPMARK names the binary. A tuning takes some 40 seconds, and two run
# at once. With a FOLDER, what was measured stays there, and the same command goes on.
set -eu
runs=${1:-10} budget=${2:-90s} place=${3:-}
heapmark=$(realpath "${HEAPMARK:-target/release/heapmark}")
fakes=$(realpath crates/heapmark/tests/fakes)
[ -n "$place" ] || {
    place=$(mktemp -d)
    trap 'rm -rf "$place"' EXIT
}
mkdir -p "$place"
place=$(realpath "$place")
cd "$place"
# What is there stays as it is: a tuning that was interrupted goes on only with the files that it has measured.
library() { [ -e "$1" ] || cc -O1 -shared -fPIC -fno-builtin "$fakes/knobs.c" "$fakes/own.c" -o "$@"; }
library libknobs.so
library libidle.so
library libnone.so -DWORK=0
[ -e load ] || {
    cat >load.c <<'C'
#include <stdlib.h>
int main(void) {
    for (int i = 0; i < 20000; i++) { void *volatile p = malloc(16 + i % 100); free(p); }
    return 0;
}
C
    cc -O1 -fno-builtin load.c -o load
}
export XDG_CONFIG_HOME="$place/config"
mkdir -p config/heapmark/allocators
# An entry NAME, then a knob and its bundle for each further pair of words. Either library reads KNOBS_* only.
entry() {
    name=$1 prefix=$(echo "$1" | tr '[:lower:]' '[:upper:]')
    shift
    printf 'name = "%s"\nfamily = "%s"\nabout = "planted"\ntier = "user"\nreads = ["%s_*"]\n' "$name" "$name" "$prefix"
    printf 'source = { kind = "path", files = ["%s/lib%s.so"] }\n' "$place" "$name"
    while [ $# -gt 0 ]; do
        printf '\n[[knobs]]\nname = "%s_%s"\ndefault = "0"\nvalues = ["1"]\nbundle = "%s"\n' "$prefix" "$1" "$2"
        printf 'kind = "count"\nmoves = ["time"]\nread-back = false\n'
        shift 2
    done
}
entry knobs FASTER faster SLOWER slower LITTLE little INERT inert NEEDS pair NEEDED pair HARMFUL harmful \
    >config/heapmark/allocators/knobs.toml
entry idle INERT a NONE b NOTHING c NOUGHT d NIL e ZERO f >config/heapmark/allocators/idle.toml
# Each tuning has a folder of its own: what another one stores would look like files that the command writes.
# shellcheck disable=SC2016
tune='
mkdir -p "$2" && cd "$2"
[ -e told.json ] && exit
"$0" --quiet tune -a "${2%-*}" --budget "$1" --format json -o tuning -- ../load >told.part
[ ! -s told.part ] || mv told.part told.json'
for allocator in knobs idle; do seq -f "$allocator-%g" "$runs"; done | xargs -P 2 -n 1 sh -c "$tune" "$heapmark" "$budget"
python3 - "$runs" <<'PYTHON'
import json, math, os, statistics, sys


def seconds(library):
    """CPU time of a process."""
    def once():
        child = os.posix_spawn("load", ["load"], {"LD_PRELOAD": f"./lib{library}.so"})
        usage = os.wait4(child, 0)[2]
        return usage.ru_utime + usage.ru_stime
    return statistics.median(once() for _ in range(25))


runs = int(sys.argv[1])
# Knobs change the work of malloc, and not what a process does beside it.
beside = seconds("none") / seconds("knobs")
truth = {name: beside + (1 - beside) * planted for name, planted in [("faster", 0.90), ("pair", 0.92)]}
right, biases, widths = {"knobs": 0, "idle": 0}, [], []
for allocator in right:
    for run in range(1, runs + 1):
        try:
            told = json.load(open(f"{allocator}-{run}/told.json"))
        except (FileNotFoundError, ValueError):
            print(allocator, run, "no answer")
            continue
        helps = {}
        for it in told["confirmed"]:
            if (it["confirmation"] or {}).get("word") == "confirmed":
                helps["+".join(it["setting"]["bundles"])] = it["ratios"]["time"]
        bundles = set("+".join(helps).split("+")) - {""}
        is_right = bundles == set(truth) if allocator == "knobs" else not helps
        right[allocator] += is_right
        print(allocator, run, "right" if is_right else "WRONG", {name: round(it["ratio"], 4) for name, it in helps.items()})
        for name in set(helps) & set(truth):
            low, high = helps[name]["interval"]
            biases.append(math.log(helps[name]["ratio"] / truth[name]))
            widths.append(math.log(high / low) / 2)
bias, width = (sum(all) / max(len(all), 1) for all in (biases, widths))
print(f"{right['knobs']} of {runs} found what helps and nothing else; {right['idle']} of {runs} found nothing where nothing was")
print(f"bias of the confirmed ratios {bias:+.4f}, half-width {width:.4f}")
sys.exit(right["knobs"] * 10 < runs * 9 or right["idle"] * 20 < runs * 19 or abs(bias) > width / 4)
PYTHON
