#!/bin/sh
# Plants 1 % more instructions into each call and asks `compare --fail-on slower` 40 times, 15 duets each, whether it sees that; and as
# often whether it sees a difference where nothing is planted: some 10 minutes. Exits with 1 if it sees less than 36, or more than 4 of these.
#
#   planted.sh [TRIES]
set -eu
cd "$(dirname "$0")/.."
heapmark=${HEAPMARK:-target/release/heapmark}
tries=${1:-40}
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
"$heapmark" build planted-effects > /dev/null
library=$(find "${HEAPMARK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/heapmark}/programs" -name plant.so | head -n 1)

# Of 300 steps, which take most of a call's time.
mkdir -p "$home/heapmark/allocators"
for row in plain:300 again:300 plus1:303; do
    cat > "$home/heapmark/allocators/${row%:*}.toml" << END
name = "${row%:*}"
family = "planted"
about = "glibc's functions after some steps"
tier = "user"
wrapper = true
source = { kind = "path", files = ["$library"] }
environment = { PLANT_STEPS = "${row#*:}" }
END
done
export XDG_CONFIG_HOME="$home"

seen() { # seen NAME SEED: whether NAME is called slower than plain
    run="$home/$1-$2"
    "$heapmark" run -w churn-private -t 1 -a "plain,$1" --baseline plain --blocks 15 --target-ms 150 --seed "$2" --no-floor \
        -o "$run" > /dev/null 2>> "$home/words"
    code=0
    "$heapmark" compare "$run" --threshold 0.3% --fail-on slower > /dev/null 2>> "$home/words" || code=$?
    rm -r "$run"
    case "$code" in 0 | 3) ;; *) cat "$home/words" >&2; exit "$code" ;; esac
    [ "$code" = 3 ]
}

found=0
alarms=0
for seed in $(seq "$tries"); do
    if seen plus1 "$seed"; then found=$((found + 1)); fi
    if seen again "$seed"; then alarms=$((alarms + 1)); fi
done
echo "$tries tries: 1 % more instructions called slower in $found, the same library in $alarms"
[ $((10 * found)) -ge $((9 * tries)) ] && [ $((10 * alarms)) -le "$tries" ]
