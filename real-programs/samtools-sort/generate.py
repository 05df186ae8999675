"""Writes reads.sam: SIZE alignments in no order."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])

with open("reads.sam", "w") as file:
    for at in range(1, 23):
        file.write("@SQ\tSN:chr%d\tLN:200000000\n" % at)
    bases = "".join(draw.choice("ACGT") for _ in range(100000))
    for at in range(size):
        begin = draw.randrange(99900)
        file.write("read%d\t%d\tchr%d\t%d\t%d\t100M\t*\t0\t0\t%s\t%s\n"
                   % (at, draw.choice([0, 16]), draw.randrange(1, 23), draw.randrange(1, 199_000_000), draw.randrange(60), bases[begin : begin + 100], "I" * 100))
