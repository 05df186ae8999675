# count-mallocs COMMAND ARGUMENT...: runs the command and prints on stderr how often it and its children called the malloc
# family. In a static program no library can count.
[ $# -gt 0 ] || { echo "count-mallocs COMMAND ARGUMENT..." >&2; exit 2; }
COUNTS=$(mktemp) || exit 1
head -c 40 /dev/zero > "$COUNTS"
LD_PRELOAD=$(dirname "$0")/count.so COUNTS=$COUNTS COUNTS_OF=all "$@"
code=$?
set -- malloc free calloc realloc aligned
od -An -v -t u8 -w8 "$COUNTS" | while read -r count; do echo "$1=$count" >&2; shift; done
rm -f "$COUNTS"
exit $code
