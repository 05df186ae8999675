"""Writes nginx.conf, pages and client.py, which asks for SIZE pages over four connections."""
import os
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])

os.makedirs("pages", exist_ok=True)
with open("nginx.conf", "w") as file:
    file.write("""daemon off;
master_process off;
pid nginx.pid;
error_log stderr;
events { worker_connections 64; }
http {
    access_log off;
    keepalive_requests 1000000;
    client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
    default_type text/html;
    gzip on;
    gzip_min_length 10;
    server {
        listen 127.0.0.1:PORT;
        root pages;
        ssi on;
    }
}
""")
for at in range(50):
    with open("pages/part%d.html" % at, "w") as file:
        file.write("<p>%s</p>\n" % " ".join("word%d" % draw.randrange(500) for _ in range(draw.randrange(20, 200))))
for at in range(20):
    with open("pages/page%d.html" % at, "w") as file:
        file.write("".join('<!--# include virtual="/part%d.html" -->\n' % draw.randrange(50) for _ in range(8)))
with open("client.py", "w") as file:
    file.write("SIZE = %d\n" % size)
    file.write('''import socket
import sys
import zlib

connections = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(4)]
readers = [connection.makefile("rb") for connection in connections]
digest = 0


def body(reader):
    """The page of an answer in chunks."""
    if b" 200 " not in reader.readline():
        sys.exit("no page")
    while reader.readline() != b"\\r\\n":
        pass
    page = b""
    while length := int(reader.readline(), 16):
        page += reader.read(length)
        reader.readline()
    reader.readline()
    return zlib.decompress(page, 47)


for start in range(0, SIZE, 4):
    for at, connection in enumerate(connections):
        connection.sendall(b"GET /page%d.html HTTP/1.1\\r\\nHost: a\\r\\nAccept-Encoding: gzip\\r\\n\\r\\n" % ((start + at) % 20))
    for reader in readers:
        digest = zlib.crc32(body(reader), digest)
print("%08x" % digest)
''')
