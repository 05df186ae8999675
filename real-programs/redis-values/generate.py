"""Writes commands.txt for redis-cli: SIZE values are set, half are deleted, larger ones are set."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])


def put(file, *words):
    """One command of redis's protocol."""
    file.write("*%d\r\n" % len(words))
    for word in words:
        file.write("$%d\r\n%s\r\n" % (len(word), word))


with open("commands.txt", "w", newline="") as file:
    for number in range(size):
        put(file, "SET", "key:%d" % number, "v" * draw.randrange(20, 200))
        if number % 10 == 0:
            put(file, "LPUSH", "list:%d" % draw.randrange(100), "item %d" % number)
            put(file, "HSET", "hash:%d" % draw.randrange(100), "field%d" % number, "value %d" % number)
    for number in range(0, size, 2):
        put(file, "DEL", "key:%d" % number)
    for number in range(size // 2):
        put(file, "SET", "larger:%d" % number, "v" * draw.randrange(200, 500))
