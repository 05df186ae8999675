"""Writes frames.y4m: SIZE frames of moving shapes and noise."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])

width, height = 320, 180
noise = draw.randbytes(width * height * 2)
with open("frames.y4m", "wb") as file:
    file.write(b"YUV4MPEG2 W%d H%d F25:1 Ip A1:1 C420jpeg\n" % (width, height))
    for frame in range(size):
        shift = draw.randrange(width)
        file.write(b"FRAME\n" + noise[shift : shift + width * height // 2] + bytes([frame * 7 % 256]) * (width * height // 2))
        file.write(bytes([(frame * 3 + at) % 256 for at in range(width * height // 2)]))
