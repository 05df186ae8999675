"""Writes plan.mod: what SIZE places send to SIZE others at the least cost."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])

with open("plan.mod", "w") as file:
    file.write("set A; set B; param cost{A, B}; param has{A}; param wants{B};\nvar sent{A, B} >= 0;\n")
    file.write("minimize total: sum{a in A, b in B} cost[a, b] * sent[a, b];\n")
    file.write("subject to left{a in A}: sum{b in B} sent[a, b] <= has[a];\nsubject to come{b in B}: sum{a in A} sent[a, b] >= wants[b];\n")
    file.write("subject to share{a in A, b in B: cost[a, b] > 50}: sent[a, b] <= has[a] / 4;\nsolve;\ndata;\n")
    file.write("set A := %s;\nset B := %s;\n" % (" ".join("a%d" % at for at in range(size)), " ".join("b%d" % at for at in range(size))))
    file.write("param cost : %s :=\n" % " ".join("b%d" % at for at in range(size)))
    for at in range(size):
        file.write("a%d %s\n" % (at, " ".join(str(draw.randrange(1, 100)) for _ in range(size))))
    file.write(";\nparam has := %s;\n" % ", ".join("a%d %d" % (at, draw.randrange(200, 300)) for at in range(size)))
    file.write("param wants := %s;\nend;\n" % ", ".join("b%d %d" % (at, draw.randrange(10, 150)) for at in range(size)))
