"""Writes client.py, which puts SIZE jobs, takes and deletes most, and puts others."""
import sys

seed, size = int(sys.argv[1]), int(sys.argv[2])
with open("client.py", "w") as file:
    file.write("SEED, SIZE = %d, %d\n" % (seed, size))
    file.write('''import random
import socket
import sys

draw = random.Random(SEED)
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
reader = connection.makefile("rb")
BATCH = 100
taken = held = 0


def put(count):
    """Puts jobs of many sizes."""
    jobs = [b"j" * draw.choice([20, 90, 300, 1500, 6000]) for _ in range(count)]
    connection.sendall(b"".join(b"put %d 0 600 %d\\r\\n%s\\r\\n" % (draw.randrange(1000), len(job), job) for job in jobs))
    return sum(reader.readline().startswith(b"INSERTED") for _ in jobs)


def take(count):
    """Takes the most urgent jobs and deletes them."""
    connection.sendall(b"reserve\\r\\n" * count)
    names = []
    for _ in range(count):
        word, name, length = reader.readline().split()
        reader.read(int(length) + 2)
        names.append(name)
    connection.sendall(b"".join(b"delete %s\\r\\n" % name for name in names))
    return sum(reader.readline() == b"DELETED\\r\\n" for _ in names)


for at in range(max(1, SIZE // BATCH)):
    held += put(BATCH)
    if at % 4:
        taken += take(BATCH)
print(held, taken)
''')
