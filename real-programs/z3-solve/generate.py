"""Writes problem.smt2: SIZE pigeonhole problems with clauses in random order, each with equations of bit vectors."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
HOLES, VECTORS = 7, 40
pairs = [(hole, pigeon, other) for hole in range(HOLES) for pigeon in range(HOLES + 1) for other in range(pigeon)]
with open("problem.smt2", "w") as file:
    for _ in range(int(sys.argv[2])):
        file.write("(push)\n")
        names = ["p%d_%d" % (pigeon, hole) for pigeon in range(HOLES + 1) for hole in range(HOLES)]
        draw.shuffle(names)
        file.write("".join("(declare-const %s Bool)\n" % name for name in names))
        clauses = ["(or %s)" % " ".join("p%d_%d" % (pigeon, hole) for hole in range(HOLES)) for pigeon in range(HOLES + 1)]
        clauses += ["(not (and p%d_%d p%d_%d))" % (pigeon, hole, other, hole) for hole, pigeon, other in pairs]
        draw.shuffle(clauses)
        file.write("".join("(assert %s)\n" % clause for clause in clauses))
        file.write("(check-sat)\n(pop)\n(push)\n")
        file.write("".join("(declare-const v%d (_ BitVec 16))\n" % number for number in range(VECTORS)))
        for number in range(VECTORS - 2):
            value = draw.randrange(1, 65536)
            terms = (number, number + 1, value | 1, number + 2, value)
            file.write("(assert (= (bvadd v%d (bvmul v%d #x%04x)) (bvxor v%d #x%04x)))\n" % terms)
        file.write("(check-sat)\n(pop)\n")
