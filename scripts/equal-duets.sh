#!/bin/sh
# Compares a library with two copies of its file, 15 duets of 2 x 0.15 s in each of 20 kernels with one thread: 400 comparisons
# of equals in about half an hour on 2 CPUs. Counts how many are called faster or slower, and how many intervals leave out 1
# (5 % are accepted). Exits with 1 if either is above what chance gives once in a hundred times.
#
#   equal-duets.sh [SEEDS [FOLDER]]    the runs go to FOLDER, or to a temporary one that is removed
set -eu
cd "$(dirname "$0")/.."
heapmark=${HEAPMARK:-target/release/heapmark}
seeds=${1:-10}
kernels=churn,churn-private,larson,larson-hoard,larson-mimalloc-bench,zalloc,zalloc-calloc,steady,larson-paper-like,same-thread
kernels=$kernels,same-thread-block,aligned-grid-64-100,calloc,grow,hot-ring,medium,pair-edge,large,cross-vector,cache-scratch
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
runs=${2:-$folder/runs}
mkdir -p "$runs"

library=$("$heapmark" list allocators --format json |
    python3 -c 'import json, sys; print(next(one for one in json.load(sys.stdin) if one["name"] == "mimalloc2")["files"][0])')
for copy in one two; do cp "$library" "$folder/$copy.so"; done
seed=1
while [ "$seed" -le "$seeds" ]; do
    [ -e "$runs/$seed.csv" ] || {
        rm -rf "${runs:?}/$seed"
        "$heapmark" run -w "$kernels" -t 1 -a "mimalloc2,one=$folder/one.so,two=$folder/two.so" --baseline mimalloc2 \
            --no-aa-copy --no-floor --blocks 15 --target-ms 150 --seed "$seed" --quiet -o "$runs/$seed" >"$runs/$seed.txt"
        "$heapmark" export "$runs/$seed" --to csv -o "$runs/$seed.part"
        mv "$runs/$seed.part" "$runs/$seed.csv"
    }
    seed=$((seed + 1))
done
python3 - "$runs" <<'PYTHON'
import csv, math, pathlib, sys
rows = [row for file in pathlib.Path(sys.argv[1]).glob("*.csv") for row in csv.DictReader(file.open())]
rows = [row for row in rows if row["allocator"] in ("one", "two") and row["metric"] == "ns_per_op"]
judged = [row for row in rows if row["low"]]
if not judged:
    sys.exit("no comparison was judged")
false = [row for row in judged if row["verdict"] in ("faster", "slower")]
outside = [row for row in judged if not float(row["low"]) <= 1 <= float(row["high"])]
widths = sorted((float(row["high"]) / float(row["low"]) - 1) / 2 for row in judged)
print(f"{len(judged)} of {len(rows)} comparisons: {len(false)} called faster or slower, {len(outside)} intervals leave out 1, "
      f"median half-width {100 * widths[len(widths) // 2]:.2f} %")
most = 0.05 * len(judged) + 2.33 * math.sqrt(0.05 * 0.95 * len(judged))
sys.exit(len(judged) < len(rows) or max(len(false), len(outside)) > most)
PYTHON
