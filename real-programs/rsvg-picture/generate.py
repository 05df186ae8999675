"""Writes picture.svg: SIZE shapes in groups, with gradients."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])

with open("picture.svg", "w") as file:
    file.write('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 1000">\n<style>.a { stroke: #333; } .b { opacity: 0.6; } g > path { fill-rule: evenodd; }</style>\n')
    for at in range(size // 20 + 1):
        file.write('<linearGradient id="g%d"><stop offset="0" stop-color="#%06x"/><stop offset="1" stop-color="#%06x"/></linearGradient>\n'
                   % (at, draw.randrange(1 << 24), draw.randrange(1 << 24)))
    for at in range(size):
        x, y = draw.randrange(1000), draw.randrange(1000)
        curves = " ".join("c%d,%d %d,%d %d,%d" % tuple(draw.randrange(-40, 40) for _ in range(6)) for _ in range(draw.randrange(2, 9)))
        file.write('<g transform="translate(%d %d) rotate(%d)"><path class="%s" fill="url(#g%d)" d="M0,0 %s z"/></g>\n'
                   % (x, y, draw.randrange(360), draw.choice("ab"), draw.randrange(size // 20 + 1), curves))
    file.write("</svg>\n")
