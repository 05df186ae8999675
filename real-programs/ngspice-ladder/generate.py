"""Writes circuit.cir: a ladder of SIZE steps."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])

with open("circuit.cir", "w") as file:
    file.write("ladder\nV1 n0 0 SIN(0 5 1k)\nVCC cc 0 9\n.model q NPN(BF=120)\n.model d D\n")
    for at in range(size):
        file.write("R%d n%d n%d %d\nC%d n%d 0 %dn\n" % (at, at, at + 1, draw.randrange(100, 900), at, at + 1, draw.randrange(1, 99)))
        file.write("Q%d c%d n%d 0 q\nRC%d cc c%d 2k\nD%d n%d m%d d\nRM%d m%d 0 10k\n" % (at, at, at + 1, at, at, at, at + 1, at, at, at))
    file.write(".tran 2u 4m\n.print tran v(n%d)\n.end\n" % size)
