#!/bin/sh
# Runs the workloads of the reference documents at quick size, and writes docs/REPRODUCTION.md from the runs. Takes about 25
# minutes on 2 CPUs. Allocators are those of the documents; missing ones are left out, and the page says so.
# A folder for the runs may be named: scripts/reproduction.sh FOLDER
set -eu
cd "$(dirname "$0")/.."
heapmark=${HEAPMARK:-target/release/heapmark}
runs=${1:-heapmark-results/reproduction-$(date -u +%Y-%m-%d-%H%M%S)}

# No verdict here uses the A/A copy or the floor. Exit code 4: some rows failed or cannot run here (a device, a language),
# and their claims say so.
run() {
    name=$1
    shift
    "$heapmark" run "$@" --preset quick --no-aa-copy --no-floor -o "$runs/$name" || [ $? -eq 4 ]
}

run binary-trees binary-trees -w binary-trees,binary-trees-20 --set binary-trees-20.n=15 -a glibc,jemalloc,dlmalloc --blocks 5
run micromalloc micromalloc -a glibc,jemalloc,jemalloc-decay0,mimalloc2,snmalloc,rpmalloc,tcmalloc --blocks 5 --target-ms 100
run rpmalloc rpmalloc --set 'scatter-legacy-*.loops=50' -a glibc,jemalloc,rpmalloc,gperftools --blocks 5
run zalloc zalloc -a glibc,jemalloc,mimalloc2 --blocks 20
sized='churn,speed-*,memory,memory-4x4'
ours='glibc,dlmalloc,hoard,jemalloc,rpmalloc,tbbmalloc'
run llheap-fisher llheap -w "$sized,cache-thrash,cache-scratch" -a $ours --blocks 7 --target-ms 100
run llheap-uniform llheap -w "$sized" --set '*.distribution=uniform' -a $ours --blocks 7 --target-ms 100

"$heapmark" claims "$runs"/binary-trees "$runs"/micromalloc "$runs"/rpmalloc "$runs"/zalloc "$runs"/llheap-fisher \
    "$runs"/llheap-uniform --reproduction -o docs/REPRODUCTION.md --force
echo "docs/REPRODUCTION.md is written; the runs are in $runs"
