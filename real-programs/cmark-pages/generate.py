"""Writes pages.md: SIZE blocks of CommonMark."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])

words = ["tree", "*leaf*", "**root**", "`code`", "[link](http://a.example/b)", "and", "of", "the", "\\*", "<b>", "&amp;", "line"]
says = lambda count: " ".join(draw.choice(words) for _ in range(count))
with open("pages.md", "w") as file:
    for _ in range(size):
        kind = draw.randrange(5)
        if kind == 0:
            file.write("#" * draw.randrange(1, 5) + " " + says(4) + "\n\n")
        elif kind == 1:
            file.write("".join("%s- %s\n" % ("  " * depth, says(6)) for depth in range(draw.randrange(1, 5))) + "\n")
        elif kind == 2:
            file.write("> " + says(12) + "\n> " + says(5) + "\n\n")
        else:
            file.write(says(draw.randrange(8, 40)) + "\n\n")
