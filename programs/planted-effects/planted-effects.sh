# planted-effects NS PERCENT COMMAND ARGUMENT...: runs the command on glibc's malloc with so many nanoseconds more in each call
# that allocates, and so many per cent more memory asked for.
[ $# -gt 2 ] || { echo "planted-effects NS PERCENT COMMAND ARGUMENT..." >&2; exit 2; }
PLANT_NS=$1 PLANT_PERCENT=$2 LD_PRELOAD=$(dirname "$0")/plant.so
export PLANT_NS PLANT_PERCENT LD_PRELOAD
shift 2
exec "$@"
