#!/bin/sh
# Runs the end-to-end tests several times, in turn alone and beside four busy loops, and says how each run ended. Exit code 1 if
# one of them had a failure.
#
#   beside-load.sh [ALONE BESIDE]   how often [default: 5 5]
set -eu
cd "$(dirname "$0")/.."
alone=${1-5} beside=${2-5}

loops=
start_load() { for _ in 1 2 3 4; do sh -c 'while :; do :; done' & loops="$loops $!"; done; }
# shellcheck disable=SC2086
end_load() { [ -z "$loops" ] || kill $loops; loops=; }
trap end_load EXIT
trap 'exit 130' INT TERM

cargo test --locked --workspace --tests --no-run
log=target/beside-load.log
: >"$log"
failed=0
run() { # run WHAT
    began=$(date +%s)
    code=0
    cargo test --locked -p heapmark --no-fail-fast --test core --test further >>"$log" 2>&1 || code=$?
    echo "$(git rev-parse --short HEAD) $1: exit code $code after $(($(date +%s) - began)) s" | tee -a "$log"
    [ $code = 0 ] || failed=1
}
while [ "$alone" -gt 0 ] || [ "$beside" -gt 0 ]; do
    if [ "$alone" -gt 0 ]; then alone=$((alone - 1)); run alone; fi
    if [ "$beside" -gt 0 ]; then beside=$((beside - 1)); start_load; run "beside four busy loops"; end_load; fi
done
if [ $failed = 0 ]; then
    echo "no failure (all output: $log)"
else
    grep -E '^test .* FAILED$' "$log" | sort | uniq -c
fi
exit $failed
