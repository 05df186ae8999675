"""Writes journal.txt: SIZE transactions of a household."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
with open("journal.txt", "w") as file:
    for number in range(int(sys.argv[2])):
        file.write("20%02d/%02d/%02d Shop %d\n" % (number * 20 // int(sys.argv[2]), draw.randrange(1, 13), draw.randrange(1, 28), draw.randrange(500)))
        cents = draw.randrange(100, 99999)
        file.write("    Expenses:Group%d:Kind%d  %d.%02d EUR\n" % (draw.randrange(9), draw.randrange(40), cents // 100, cents % 100))
        file.write("    Assets:Bank%d\n\n" % draw.randrange(6))
