"""Writes work.py, which expands a polynomial of degree SIZE."""
import sys

seed, size = int(sys.argv[1]), int(sys.argv[2])
with open("work.py", "w") as file:
    file.write("""from sympy import Poly, diff, expand, sin, symbols

x, y, z = symbols("x y z")
wide = expand((x + %d * y + z + sin(x)) ** %d)
slope = expand(diff(wide, x) * (x - y))
print(len(wide.args), len(slope.args), Poly(wide, z).degree())
""" % (seed + 1, size))
