#!/bin/sh
# Compares glibc with its own copy 40 times, 15 blocks each, and counts how often the two are called different: about 5
# minutes on 2 CPUs. Exits with 1 if there are more than 4 by either clock, more than chance gives at 5 %.
#
#   false-alarms.sh [COMPARISONS [FOLDER]]    the runs go to FOLDER, or to a temporary one that is removed
set -eu
cd "$(dirname "$0")/.."
heapmark=${HEAPMARK:-target/release/heapmark}
comparisons=${1:-40}
if [ $# -gt 1 ]; then
    runs=$2
    mkdir -p "$runs"
else
    runs=$(mktemp -d)
    trap 'rm -rf "$runs"' EXIT
fi

seed=1
while [ "$seed" -le "$comparisons" ]; do
    "$heapmark" noise --blocks 15 --target-ms 120 --seed "$seed" -o "$runs/$seed" > "$runs/$seed.txt"
    seed=$((seed + 1))
done
# A line of 15 blocks for each clock: blocks, comparisons, false alarms, "%", ...
awk '
    /^wall time/ { clock = "wall" }
    /^CPU time/ { clock = "cpu" }
    $1 == 15 { seen[clock]++; alarms[clock] += $3 > 0 }
    END {
        printf "%d comparisons: %d called different by wall time, %d by CPU time\n", seen["wall"], alarms["wall"], alarms["cpu"]
        exit !(seen["wall"] == n && seen["cpu"] == n && alarms["wall"] <= n / 10 && alarms["cpu"] <= n / 10)
    }
' n="$comparisons" "$runs"/*.txt
