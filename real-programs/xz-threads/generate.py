"""Writes data.bin: SIZE KiB of text with repetitions."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
words = [b"word%d " % draw.randrange(10**6) for _ in range(3000)]
with open("data.bin", "wb") as file:
    for _ in range(int(sys.argv[2])):
        block = b"".join(draw.choice(words) for _ in range(150))
        file.write(block[:1024].ljust(1024, b"."))
