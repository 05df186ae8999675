"""Writes unit.c: SIZE functions with loops, records and calls of earlier ones."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])

with open("unit.c", "w") as file:
    for at in range(size):
        fields = draw.randrange(2, 8)
        file.write("struct r%d { %s };\n" % (at, " ".join("long f%d;" % field for field in range(fields))))
        file.write("long g%d(struct r%d *r, int n) {\n    long sum = 0;\n    for (int i = 0; i < n; i++) {\n" % (at, at))
        for step in range(draw.randrange(4, 12)):
            one, other = draw.randrange(fields), draw.randrange(fields)
            file.write("        if (r[i].f%d %% %d > i) sum += r[i].f%d * %d; else r[i].f%d ^= sum >> %d;\n"
                       % (one, draw.randrange(3, 99), other, draw.randrange(1, 999), other, step))
        if at:
            called = draw.randrange(at)
            file.write("        sum -= g%d((struct r%d *)r, n - i - 1);\n" % (called, called))
        file.write("    }\n    return sum;\n}\n")
