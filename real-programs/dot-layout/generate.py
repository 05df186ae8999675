"""Writes graph.dot: SIZE nodes in layers, with edges to the next layers."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])
with open("graph.dot", "w") as file:
    file.write("digraph calls {\n  rankdir=LR;\n")
    for number in range(size):
        file.write('  n%d [label="function %d\\n%d bytes", shape=box];\n' % (number, number, draw.randrange(10**6)))
    for number in range(1, size):
        for _ in range(1 + (draw.randrange(4) == 0)):
            file.write('  n%d -> n%d;\n' % (draw.randrange(max(0, number - 60), number), number))
    file.write("}\n")
