#!/bin/sh
# Runs the workloads of the reference documents, and writes docs/REPRODUCTION.md from the runs. Allocators and languages are
# those of the documents; missing ones are left out, and the page says so.
#   SIZE  quick (the default; some 25 minutes on 2 CPUs), or paper: the documents' own sizes, or a share of them that the page
#         names. Some four hours on 2 CPUs, in parts of at most 90 minutes.
#   RUNS  the folder for the parts. One that is complete is not run again, and one that was stopped goes on: say it again.
#         A part of size paper that is not there is unpacked from docs/reproduction, if it is there.
#   PART  the name of one part: only this one is run, and no page is written.
set -eu
cd "$(dirname "$0")/.."
heapmark=${HEAPMARK:-target/release/heapmark}
size=${SIZE:-quick}
runs=${RUNS:-heapmark-results/reproduction-$size-$(date -u +%Y-%m-%d-%H%M%S)}
parts=

# No verdict here uses the A/A copy or the floor. Exit code 4: some rows failed or cannot run here (a device, a language),
# and their claims say so.
part() {
    name=$1
    shift
    dir=$runs/$name
    if [ -n "${PART:-}" ] && [ "$PART" != "$name" ]; then
        return 0
    fi
    packed=docs/reproduction/$name.tar.xz
    if [ "$size" = paper ] && [ -z "${PART:-}" ] && [ ! -d "$dir" ] && [ -f "$packed" ]; then
        mkdir -p "$runs/packed"
        tar -xJf "$packed" -C "$runs/packed"
        parts="$parts $runs/packed/$name"
        return 0
    fi
    parts="$parts $dir"
    if [ -d "$dir" ]; then
        set -- --resume "$dir"
    else
        set -- "$@" --preset "$size" --no-aa-copy --no-floor -o "$dir"
    fi
    "$heapmark" run "$@" || [ $? -eq 4 ] || {
        echo "to go on: make reproduction SIZE=$size RUNS=$runs" >&2
        exit 1
    }
}

trees='glibc,jemalloc,jemalloc-muzzy,dlmalloc'
micromalloc='glibc,glibc-notcache,jemalloc,jemalloc-decay0,mimalloc2,snmalloc,rpmalloc,tcmalloc'
rpmalloc='glibc,glibc-notcache,jemalloc,rpmalloc,gperftools'
llheap='glibc,dlmalloc,hoard,jemalloc,rpmalloc,tbbmalloc'
sized='churn,speed-*,memory,memory-4x4'
shared='cache-thrash,cache-scratch'

case $size in
quick)
    part binary-trees binary-trees -w binary-trees,binary-trees-20 --set binary-trees-20.n=15 -a "$trees" --blocks 5
    part micromalloc micromalloc -a "$micromalloc" --blocks 5 --target-ms 100
    part rpmalloc rpmalloc --set 'scatter-legacy-*.loops=50' -a "$rpmalloc" --blocks 5
    part zalloc zalloc -a glibc,jemalloc,mimalloc2 --blocks 20
    part llheap-fisher llheap -w "$sized,$shared" -a "$llheap" --blocks 7 --target-ms 100
    part llheap-uniform llheap -w "$sized" --set '*.distribution=uniform' -a "$llheap" --blocks 7 --target-ms 100
    ;;
paper)
    part binary-trees-21 binary-trees -w binary-trees -a "$trees" --blocks 5
    part binary-trees-20 binary-trees -w binary-trees-20 -a "$trees" --blocks 5
    part micromalloc micromalloc --threads 1,2,4,8 -a "$micromalloc" --blocks 5
    # All 20,000 loops take a process of 2 threads 5 minutes, and one of 8 threads a quarter of an hour.
    part rpmalloc rpmalloc --threads 1,2 --set 'scatter-legacy-*.loops=300' -a "$rpmalloc" --blocks 5
    part rpmalloc-many rpmalloc --threads 4,8 --set 'scatter-legacy-*.loops=50' -a "$rpmalloc" --blocks 5
    # The claim is about up to 6 threads: with 6 CPUs or more, let them run. All 1000 loops take a process 10 minutes.
    part rpmalloc-caches rpmalloc -w scatter-legacy-cache-study --threads 1,2 --set scatter-legacy-cache-study.loops=5 -a "$rpmalloc" --blocks 5
    part zalloc zalloc -a glibc,jemalloc,mimalloc2 --blocks 20
    # With all of the chapter's 48 threads it takes an hour and a half.
    part llheap-fisher llheap -w "$sized" --threads 1,2,4,8,16 -a "$llheap" --blocks 5
    # Whether a claim depends on the distribution shows where claims are judged: with no more threads than CPUs.
    part llheap-uniform llheap -w "$sized" --threads 1,2 --set '*.distribution=uniform' -a "$llheap" --blocks 5
    part llheap-shared llheap -w "$shared" --threads 1,2,4,8 -a "$llheap" --blocks 5
    ;;
*)
    echo "SIZE is quick or paper, not $size" >&2
    exit 2
    ;;
esac

if [ -z "${PART:-}" ]; then
    # shellcheck disable=SC2086
    "$heapmark" claims $parts --reproduction -o docs/REPRODUCTION.md --force
    echo "docs/REPRODUCTION.md is written; the runs are in $runs"
elif [ -z "$parts" ]; then
    echo "PART: there is no part $PART at SIZE=$size" >&2
    exit 2
fi
