# time-in-malloc COMMAND ARGUMENT...: runs the command and prints on stderr how often it and its children called malloc and
# free, how many calls were timed, and their nanoseconds. In a static program no library can time them.
[ $# -gt 0 ] || { echo "time-in-malloc COMMAND ARGUMENT..." >&2; exit 2; }
HEAPMARK_TIMES=$(mktemp) || exit 1
export HEAPMARK_TIMES
head -c 24 /dev/zero > "$HEAPMARK_TIMES"
LD_PRELOAD=$(dirname "$0")/time.so "$@"
code=$?
set -- calls timed nanoseconds-of-the-timed
od -An -v -t u8 -w8 "$HEAPMARK_TIMES" | while read -r total; do echo "$1=$total" >&2; shift; done
rm -f "$HEAPMARK_TIMES"
exit $code
