"""Writes graph.lp: a graph of SIZE nodes that four colours are enough for, and costs."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])

with open("graph.lp", "w") as file:
    colours = [draw.randrange(4) for _ in range(size)]
    for _ in range(size * 4):
        one, other = draw.randrange(size), draw.randrange(size)
        if colours[one] != colours[other]:
            file.write("edge(%d,%d).\n" % (one, other))
    file.write("node(0..%d).\n1 { colour(N,C) : C = 1..5 } 1 :- node(N).\n:- edge(A,B), colour(A,C), colour(B,C).\n" % (size - 1))
    file.write("far(A,C) :- edge(A,B), edge(B,C), A < C.\nsame(A,B) :- far(A,B), colour(A,C), colour(B,C).\n:- #count { A,B : same(A,B) } < %d.\n" % (size // 2))
