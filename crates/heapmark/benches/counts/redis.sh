# A server, some load, and its orderly end.
set -eu
redis-server --port 0 --unixsocket ./socket --save '' --daemonize no > log &
server=$!
while ! redis-cli -s ./socket ping > /dev/null 2>&1; do sleep 0.1; done
redis-benchmark -q -s ./socket -n 2000 -t set,lpush,zadd > /dev/null
redis-cli -s ./socket shutdown nosave
wait $server
