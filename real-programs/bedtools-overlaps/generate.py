"""Writes a.bed and b.bed: SIZE regions each."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])

for name in "ab":
    with open(name + ".bed", "w") as file:
        for at in range(size):
            start = draw.randrange(200_000_000)
            file.write("chr%d\t%d\t%d\t%s%d\t%d\t%s\n" % (draw.randrange(1, 23), start, start + draw.randrange(50, 9000), name, at, draw.randrange(1000), draw.choice("+-")))
