"""Writes a.o to d.o with SIZE functions in sections of their own, which call each other."""
import random
import subprocess
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])

for index, name in enumerate("abcd"):
    lines = []
    for at in range(size):
        lines.append('.section .text.s%d_%d,"ax",@progbits\n.globl s%d_%d\ns%d_%d:' % ((index, at) * 3))
        for _ in range(draw.randrange(1, 4)):
            lines.append("    call s%d_%d" % (draw.randrange(4), draw.randrange(size)))
        lines.append("    .quad %d\n    ret" % draw.randrange(size // 4 + 1))
    subprocess.run(["as", "-o", name + ".o", "-"], input="\n".join(lines) + "\n", text=True, check=True)
