"""Writes pages.ms: SIZE paragraphs, and tables among them."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])

words = [chr(97 + draw.randrange(26)) * draw.randrange(1, 4) + "ation"[: draw.randrange(6)] for _ in range(400)]
says = lambda count: " ".join(draw.choice(words) for _ in range(count))
with open("pages.ms", "w") as file:
    for at in range(size):
        if at % 25 == 0:
            file.write(".NH 1\n%s\n" % says(3))
        if at % 40 == 0:
            rows = "\n".join("%s\t%d\t%s" % (says(2), draw.randrange(999), says(1)) for _ in range(12))
            file.write(".TS\nbox tab(\t);\nl n l.\n%s\n.TE\n" % rows)
        file.write(".PP\n%s\n\\fI%s\\fP %s\n" % (says(40), says(2), says(30)))
