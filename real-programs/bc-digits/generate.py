"""Writes work.bc: SIZE steps of a recurrence, continued fractions and sums of series."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])
with open("work.bc", "w") as file:
    file.write('''scale = 12
x = %d.%d
for (i = 1; i <= %d; i++) {
  a[i %% 500] = x * i + a[(i * 7) %% 500] / 3
  x = (a[i %% 500] %% 97) + 1 / (x + 1)
  s = s + x * x - i / (x + 2)
}
s
scale = 60
for (i = 1; i <= %d; i++) t = t + 1 / (i * i) - a[i %% 500] / (i + 1)
t
halt
''' % (draw.randrange(9), draw.randrange(1, 10**8), size, size // 4))
