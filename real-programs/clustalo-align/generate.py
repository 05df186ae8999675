"""Proteins that descend from one: python3 generate.py SEED SIZE"""
import random
import sys

seed, size = int(sys.argv[1]), int(sys.argv[2])
numbers = random.Random(seed)
ACIDS = "ACDEFGHIKLMNPQRSTVWY"
ancestor = [numbers.choice(ACIDS) for _ in range(200)]
with open("proteins.fa", "w") as out:
    for place in range(size):
        # One in twenty is lost, three in ten are replaced.
        kept = [acid for acid in ancestor if numbers.random() > 0.05]
        own = [acid if numbers.random() > 0.3 else numbers.choice(ACIDS) for acid in kept]
        out.write(f">p{place}\n{''.join(own)}\n")
