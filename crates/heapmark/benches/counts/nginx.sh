# A server whose workers give up root's rights, some load, and its orderly end.
set -eu
PATH=$PATH:/usr/sbin
dir=$(mktemp -d /tmp/heapmark-nginx-XXXXXX)
chmod 755 "$dir"
cat > "$dir/nginx.conf" <<C
user www-data;
worker_processes 2;
daemon on;
pid $dir/pid;
error_log $dir/error.log;
events { worker_connections 64; }
http {
    access_log off;
    client_body_temp_path $dir/a; proxy_temp_path $dir/b; fastcgi_temp_path $dir/c; uwsgi_temp_path $dir/d; scgi_temp_path $dir/e;
    server { listen unix:$dir/socket; location / { return 200 "a line\n"; } }
}
C
nginx -c "$dir/nginx.conf"
python3 - "$dir/socket" <<'P'
import socket, sys
for number in range(200):
    server = socket.socket(socket.AF_UNIX)
    server.connect(sys.argv[1])
    server.sendall(b"GET / HTTP/1.0\r\n\r\n")
    while server.recv(1000):
        pass
P
pid=$(cat "$dir/pid")
kill -QUIT "$pid"
while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
rm -rf "$dir"
