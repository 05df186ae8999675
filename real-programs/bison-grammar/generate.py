"""Writes grammar.y: statements of SIZE kinds over expressions with many levels."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])

with open("grammar.y", "w") as file:
    file.write("%token NUMBER NAME\n")
    for at in range(size):
        file.write("%%token K%d\n" % at)
    file.write("%%\nprogram: %empty | program statement ';';\n")
    for at in range(size):
        parts = " ".join(draw.choice(["expression", "NAME", "list", "','", "'('"]) for _ in range(draw.randrange(1, 5)))
        file.write("statement: K%d %s;\n" % (at, parts))
    levels = min(size, 40)
    file.write("list: expression | list ':' expression;\nexpression: e0;\n")
    for level in range(levels):
        file.write("e%d: e%d | e%d 'K' K%d e%d;\n" % (level, level + 1, level, draw.randrange(size), level + 1))
    file.write("e%d: NUMBER | NAME | '[' expression ']';\n" % levels)
