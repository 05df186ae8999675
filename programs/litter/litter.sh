# litter PERCENT MIB SIZE:WEIGHT,... COMMAND ARGUMENT...: runs the command in a heap that was filled with so many MiB, replaced three
# times, and freed to so many per cent; prints on stderr what that took. Only the program of the command itself is aged.
[ $# -gt 3 ] || { echo "litter PERCENT MIB SIZE:WEIGHT,... COMMAND ARGUMENT..." >&2; exit 2; }
HEAPMARK_LITTER=$(mktemp) || exit 1
export HEAPMARK_LITTER
program=$(command -v "$4") || { echo "litter: no $4" >&2; exit 2; }
echo "$1 $(($2 << 20)) 1 1 $(stat -L -c '%d %i' "$program") $3" > "$HEAPMARK_LITTER"
shift 3
LD_PRELOAD=${LD_PRELOAD:+$LD_PRELOAD:}$(dirname "$0")/litter.so "$@"
code=$?
tail -n +2 "$HEAPMARK_LITTER" >&2
rm -f "$HEAPMARK_LITTER"
exit $code
