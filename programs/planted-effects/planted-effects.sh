# planted-effects NS PERCENT COMMAND ARGUMENT...: runs the command on glibc's malloc with NS more nanoseconds in each call
# that allocates, and PERCENT per cent more memory requested.
[ $# -gt 2 ] || { echo "planted-effects NS PERCENT COMMAND ARGUMENT..." >&2; exit 2; }
PLANT_NS=$1 PLANT_PERCENT=$2 LD_PRELOAD=$(dirname "$0")/plant.so
export PLANT_NS PLANT_PERCENT LD_PRELOAD
shift 2
exec "$@"
