"""Writes equations.smt2: SIZE questions about equations of bit vectors and functions."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])

with open("equations.smt2", "w") as file:
    file.write("(set-option :incremental true)\n(set-logic QF_UFBV)\n(declare-fun f ((_ BitVec 16)) (_ BitVec 16))\n")
    for at in range(12):
        file.write("(declare-const x%d (_ BitVec 16))\n" % at)
    term = lambda depth: "x%d" % draw.randrange(12) if not depth else draw.choice([
        "(bvadd %s %s)" % (term(depth - 1), term(depth - 1)), "(f %s)" % term(depth - 1), "(bvxor %s #x%04x)" % (term(depth - 1), draw.randrange(1 << 16))])
    for _ in range(size):
        file.write("(push 1)\n")
        for _ in range(8):
            file.write("(assert (%s %s %s))\n" % (draw.choice(["=", "bvult", "distinct"]), term(3), term(2)))
        file.write("(check-sat)\n(pop 1)\n")
