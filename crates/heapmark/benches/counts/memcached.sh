# A server that gives up root's rights when it starts, some load, and its orderly end.
set -eu
dir=$(mktemp -d /tmp/heapmark-memcached-XXXXXX)
chmod 777 "$dir"
memcached -u nobody -s "$dir/socket" -t 2 &
server=$!
python3 - "$dir/socket" <<'P'
import socket, sys, time
for attempt in range(200):
    try:
        server = socket.socket(socket.AF_UNIX)
        server.connect(sys.argv[1])
        break
    except OSError:
        time.sleep(0.05)
for number in range(2000):
    server.sendall(b"set key%d 0 0 10\r\n0123456789\r\n" % number)
    server.recv(100)
P
kill -TERM $server
wait $server || true
rm -rf "$dir"
