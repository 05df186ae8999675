#!/bin/sh
# Runs the workloads of the reference documents, and writes docs/REPRODUCTION.md from the runs. Allocators and languages are
# those of the documents; missing ones are left out, and the page says so.
#   SIZE  quick (the default; some 25 minutes on 2 CPUs), or paper: the documents' own sizes, or a share of them that the page
#         names. Some four hours on 2 CPUs, in parts of at most 90 minutes.
#   RUNS  the folder for the parts. One that is complete is not run again, and one that was stopped goes on: say it again.
#         A part of size paper that is not there is unpacked from docs/reproduction, if it is there.
#   PART  the name of one part: only this one is run, and no page is written. The parts wide-* of size paper are the documents' own
#         thread counts, for a machine with 10 cores or more; they are run only if PART names them. The page has all machines.
#   BRING allocators that no registry has, added to the rows: BRING=micromalloc=/path/lib.so,llheap=/path/lib.so
set -eu
cd "$(dirname "$0")/.."
heapmark=${HEAPMARK:-target/release/heapmark}
size=${SIZE:-quick}
runs=${RUNS:-heapmark-results/reproduction-$size-$(date -u +%Y-%m-%d-%H%M%S)}
parts=
preset=$size
floor=--no-floor

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
        # shellcheck disable=SC2086
        set -- "$@" --preset "$preset" --no-aa-copy $floor -o "$dir"
    fi
    "$heapmark" run "$@" || [ $? -eq 4 ] || {
        echo "to go on: make reproduction SIZE=$size RUNS=$runs" >&2
        exit 1
    }
}

wide() {
    if [ "${PART:-}" = "$1" ] || [ -d "$runs/$1" ] || [ -f "docs/reproduction/$1.tar.xz" ]; then
        part "$@"
    fi
}

trees='glibc,jemalloc,jemalloc-muzzy,dlmalloc'
micromalloc='glibc,glibc-notcache,jemalloc,jemalloc-decay0,mimalloc2,snmalloc,rpmalloc,tcmalloc'
rpmalloc='glibc,glibc-notcache,jemalloc,rpmalloc,gperftools'
llheap='glibc,dlmalloc,hoard,jemalloc,rpmalloc,tbbmalloc'
bring=${BRING:+,$BRING}
wide='glibc,glibc-notcache,jemalloc-decay0,mimalloc2,snmalloc'
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
    # The documents' own thread counts, in shares of their sizes that a machine with 16 cores measures in a quarter of an hour.
    wide wide-binary-trees binary-trees -w binary-trees --set binary-trees.n=17 -a "$trees" --alone --no-repeat --blocks 5
    wide wide-zalloc zalloc -w zalloc,zalloc-clwb,zalloc-pmdk --threads 1,2,4,8,16 --set zalloc-pmdk.pool-bytes=268435456 -a glibc,jemalloc,mimalloc2 --alone --no-repeat --blocks 12
    wide wide-rpmalloc-caches rpmalloc -w scatter-legacy-cache-study --threads 6 --set scatter-legacy-cache-study.loops=5 --set scatter-legacy-cache-study.blocks=30000 --set scatter-legacy-cache-study.ops=15000 -a glibc,rpmalloc,rpmalloc-nocache --alone --no-repeat --blocks 5
    wide wide-same-thread micromalloc -w same-thread,same-thread-5000 --threads 1,2,4,6,8,10 --set 'same-thread*.volume=150000000' -a "$wide$bring" --alone --no-repeat --blocks 5
    wide wide-cross-vector micromalloc -w cross-vector,cross-vector-5000 --threads 1,2,4,8 --set 'cross-vector*.volume=20000000' -a "$wide$bring" --alone --no-repeat --blocks 5
    wide wide-larson micromalloc -w larson --threads 1,2,3,4,6,8,10 --set larson.seconds=0.2 -a "$wide$bring" --alone --no-repeat --blocks 5
    wide wide-one-pair micromalloc -w larson-one-pair --threads 8,10 --set larson-one-pair.seconds=0.2 -a "$wide" --alone --no-repeat --blocks 5
    wide wide-llheap llheap -w "churn,speed-[cfmr]*,$shared" --threads 1,8,16 --set 'speed-*.objects=50000' --set 'cache-*.iterations=50' -a "$llheap$bring" --alone --no-repeat --blocks 5
    wide wide-rpmalloc rpmalloc --threads 1,2,4,8,10 --set 'scatter-legacy-*.loops=10' -a "glibc,jemalloc,rpmalloc,gperftools$bring" --alone --no-repeat --blocks 5
    # What others have published, on programs at their size of about a second; they have no floor.
    preset=quick
    part field-fan -w fan-in-race --set fan-in-race.producers=1 -a glibc,jemalloc,mimalloc2,rpmalloc,snmalloc,tbbmalloc,gperftools --blocks 12
    floor=
    part field-gs programs -w gs-pages -a glibc,rpmalloc,mimalloc2,mimalloc3,jemalloc,gperftools,snmalloc,scudo --blocks 12
    part field-cc1 programs -w cc1-functions -a glibc,rpmalloc,mimalloc2,snmalloc --blocks 12
    part field-redis programs -w redis-values -a glibc,mimalloc2,snmalloc,jemalloc,tbbmalloc --blocks 12
    part field-bc programs -w bc-digits -a glibc,rpmalloc,snmalloc,tbbmalloc,scudo --blocks 12
    part field-cc1plus programs -w cc1plus-templates -a glibc,mimalloc2 --blocks 12
    part field-python programs -w python-json -a glibc,jemalloc,mimalloc2 --blocks 12
    part field-yosys programs -w yosys-synth -a glibc,rpmalloc,snmalloc --blocks 12
    part field-rocksdb programs -w rocksdb-fill -a glibc,mimalloc3,jemalloc --blocks 12
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
