"""Writes pages.ps: SIZE pages of text, curves and fills."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
with open("pages.ps", "w") as file:
    file.write("%!PS-Adobe-3.0\n")
    for page in range(int(sys.argv[2])):
        file.write("%%%%Page: %d %d\n" % (page + 1, page + 1))
        for line in range(50):
            font = draw.choice(["Helvetica", "Times-Roman", "Courier"])
            words = " ".join("word%d" % draw.randrange(10000) for _ in range(8))
            file.write("/%s findfont %d scalefont setfont 50 %d moveto (%s) show\n" % (font, draw.randrange(8, 14), 770 - line * 14, words))
        for _ in range(60):
            numbers = tuple(draw.randrange(50, 750) for _ in range(8))
            file.write("newpath %d %d moveto %d %d %d %d %d %d curveto closepath " % numbers)
            file.write("%.2f setgray %s\n" % (draw.random(), draw.choice(["fill", "stroke"])))
        file.write("/table %d dict def 0 1 %d { dup 4 string cvs table 3 1 roll exch put } for\n" % (500, 400))
        file.write("showpage\n")
