"""Writes work.ginsh, which expands powers of degree SIZE."""
import sys

seed, size = int(sys.argv[1]), int(sys.argv[2])
with open("work.ginsh", "w") as file:
    file.write("a = expand((x + %d*y + z + sin(x) + 1)^%d):\nb = expand(diff(a, x) * (x - y)):\n" % (seed + 1, size))
    file.write("nops(a);\nnops(b);\nnops(collect(b, z));\nsubs(a, {x == 0, y == 1, z == 2});\nquit;\n")
