#!/bin/sh
# Compares glibc with its own copy 40 times, 15 blocks each, alone and in turns, and counts how often the two are called
# different: about 8 minutes on 2 CPUs. Exits with 1 if there are more than 4 either way, more than chance gives at 5 %.
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
# A line of 15 blocks for each way, which ends with false alarms, "%", found, "%", half-width, "%".
awk '
    $1 == 15 {
        way = $2 == "duets:" ? "turns" : /wall time/ ? "wall" : "cpu"
        seen[way]++
        alarms[way] += $(NF - 5) > 0
    }
    END {
        printf "%d comparisons: %d called different by wall time, %d by CPU time, %d in turns\n", \
            seen["turns"], alarms["wall"], alarms["cpu"], alarms["turns"]
        for (way in alarms) bad += seen[way] != n || alarms[way] > n / 10
        exit bad || length(alarms) != 3
    }
' n="$comparisons" "$runs"/*.txt
