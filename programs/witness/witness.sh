# witness COMMAND ARGUMENT...: runs the command and prints on stderr the library that served malloc in each of its processes,
# also if LD_PRELOAD is already set. Processes without a line are static, set-user-ID, or were started without LD_PRELOAD.
[ $# -gt 0 ] || { echo "witness COMMAND ARGUMENT..." >&2; exit 2; }
HEAPMARK_WITNESS=$(mktemp) || exit 1
export HEAPMARK_WITNESS
LD_PRELOAD=${LD_PRELOAD:+$LD_PRELOAD:}$(dirname "$0")/witness.so "$@"
code=$?
cat "$HEAPMARK_WITNESS" >&2
rm -f "$HEAPMARK_WITNESS"
exit $code
