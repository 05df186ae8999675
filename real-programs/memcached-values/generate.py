"""Writes client.py, which sets, reads and deletes SIZE values over two connections."""
import sys

seed, size = int(sys.argv[1]), int(sys.argv[2])
with open("client.py", "w") as file:
    file.write("SEED, SIZE = %d, %d\n" % (seed, size))
    file.write('''import random
import socket
import sys
import zlib

draw = random.Random(SEED)
connections = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(2)]
readers = [connection.makefile("rb") for connection in connections]


def ask(turn, requests, answers_per_request):
    """Sends requests together, and reads that many lines for each."""
    connections[turn].sendall(b"".join(requests))
    return [readers[turn].readline() for _ in range(len(requests) * answers_per_request)]


stored = digest = 0
for start in range(0, SIZE, 100):
    turn = start // 100 % 2
    values = [b"v" * draw.randrange(20, 2000) for _ in range(100)]
    sets = [b"set key%d 0 0 %d\\r\\n%s\\r\\n" % (start + at, len(value), value) for at, value in enumerate(values)]
    stored += ask(turn, sets, 1).count(b"STORED\\r\\n")
    gets = [b"get key%d\\r\\n" % (start + at) for at in range(100)]
    for line in ask(turn, gets, 3):
        digest = zlib.crc32(line, digest)
    ask(turn, [b"delete key%d\\r\\n" % (start + at) for at in range(0, 100, 2)], 1)
if stored != (SIZE + 99) // 100 * 100:
    sys.exit("only %d values of %d were stored" % (stored, SIZE))
print("%d values stored, %08x read" % (stored, digest))
''')
