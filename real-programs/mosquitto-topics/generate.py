"""Writes mosquitto.conf and client.py, which publishes SIZE messages in two thousand topics; three subscribers read them."""
import sys

seed, size = int(sys.argv[1]), int(sys.argv[2])
with open("mosquitto.conf", "w") as file:
    file.write("allow_anonymous true\nset_tcp_nodelay true\nuser root\nlog_type none\n")
with open("client.py", "w") as file:
    file.write("SEED, SIZE = %d, %d\n" % (seed, size))
    file.write('''import random
import socket
import struct
import sys
import zlib

draw = random.Random(SEED)


def packet(kind, body):
    """A packet of MQTT: its kind, its length in groups of seven bits, its body."""
    length, left = b"", len(body)
    while left > 127:
        length += bytes([left % 128 + 128])
        left //= 128
    return bytes([kind]) + length + bytes([left]) + body


def text(words):
    return struct.pack(">H", len(words)) + words


def read(reader):
    """The next packet's kind and body."""
    kind = reader.read(1)[0]
    length = shift = 0
    while True:
        byte = reader.read(1)[0]
        length += (byte % 128) << shift
        shift += 7
        if byte < 128:
            return kind, reader.read(length)


def connect(name):
    connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    connection.sendall(packet(0x10, text(b"MQTT") + bytes([4, 2, 2, 88]) + text(name)))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    reader = connection.makefile("rb")
    assert read(reader)[0] == 0x20
    return connection, reader


writer, acknowledged = connect(b"writer")
readers = [connect(b"reader%d" % at) for at in range(3)]
for at, (connection, reader) in enumerate(readers):
    connection.sendall(packet(0x82, b"\\x00\\x01" + text([b"a/#", b"+/even/#", b"#"][at]) + b"\\x00"))
    assert read(reader)[0] == 0x90
digest = 0
for start in range(0, SIZE, 50):
    expected = [0, 0, 0]
    sent = b""
    for at in range(start, start + 50):
        first, second = draw.choice([b"a", b"b"]), draw.choice([b"even", b"odd"])
        topic = b"%s/%s/%d" % (first, second, draw.randrange(500))
        sent += packet(0x31, text(topic) + b"m" * draw.choice([10, 60, 400, 2000]))
        expected = [expected[0] + (first == b"a"), expected[1] + (second == b"even"), expected[2] + 1]
    writer.sendall(sent)
    for (_, reader), count in zip(readers, expected):
        for _ in range(count):
            digest = zlib.crc32(read(reader)[1], digest)
print("%08x" % digest)
''')
