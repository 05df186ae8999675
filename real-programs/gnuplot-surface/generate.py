"""Writes surface.dat, SIZE x SIZE points, and plot.gp."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])

import math

with open("surface.dat", "w") as file:
    for x in range(size):
        for y in range(size):
            file.write("%d %d %.4f\n" % (x, y, math.sin(x / 9) * math.cos(y / 7) + draw.random() / 4))
        file.write("\n")
with open("plot.gp", "w") as file:
    file.write("set terminal svg\nset hidden3d\nset contour both\nset cntrparam levels 12\nsplot 'surface.dat' with lines notitle\n")
