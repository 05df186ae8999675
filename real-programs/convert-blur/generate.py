"""Writes picture.ppm: SIZE x SIZE pixels of shapes and noise."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])
with open("picture.ppm", "wb") as file:
    file.write(b"P6\n%d %d\n255\n" % (size, size))
    for line in range(size):
        noise = draw.randbytes(size * 3)
        if line // 64 % 2:
            noise = noise[: size * 3 // 2] + bytes([line % 256]) * (size * 3 - size * 3 // 2)
        file.write(noise)
