#!/bin/sh
# Does `heapmark history` find what was planted, and nothing else? Ten histories of eight builds of a small allocator: the fifth
# takes 2 % more time than the fourth, the seventh 10 % more memory than the sixth. Fails if more than one of ten says otherwise.
# Usage: scripts/planted-history.sh [RUNS [BLOCKS]]; HEAPMARK names the binary.
set -eu
runs=${1:-10} blocks=${2:-15}
heapmark=${HEAPMARK:-target/release/heapmark}
fakes=crates/heapmark/tests/fakes
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
builds=
for build in 1 2 3 4 5 6 7 8; do
    work=8000 pad=0
    [ $build -lt 5 ] || work=8160
    [ $build -lt 7 ] || pad=10
    cc -O1 -shared -fPIC -fno-builtin -DWORK=$work -DPAD=$pad $fakes/planted.c $fakes/own.c -o "$place/v$build.so"
    builds="$builds,v$build=$place/v$build.so"
done
right=0
for run in $(seq "$runs"); do
    "$heapmark" --quiet history -a "${builds#,}" -w same-thread -t 1 --set same-thread.volume=10000000 --blocks "$blocks" \
        --format json -o "$place/$run" >"$place/$run.json" || true
    if python3 - "$place/$run.json" <<'PYTHON'
import json, sys
told = json.load(open(sys.argv[1]))
changes = {(series["metric"], step["from"], step["to"], step["verdict"]["word"])
           for series in told["series"] for step in series["steps"] if step["verdict"]["word"] in ("faster", "slower")}
print(*sorted(changes), sep="\n  ")
sys.exit(changes != {("ns_per_op", "v4", "v5", "slower"), ("grown_bytes", "v6", "v7", "slower")})
PYTHON
    then right=$((right + 1)); fi
done
echo "$right of $runs found both changes, and no other"
[ $((right * 10)) -ge $((runs * 9)) ]
