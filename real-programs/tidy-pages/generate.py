"""Writes page.html: SIZE paragraphs, lists and tables."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])

says = lambda count: " ".join(draw.choice(["tree", "<em>leaf</em>", "<b>root</b>", "and", '<a href="b.html">link</a>', "the"]) for _ in range(count))
with open("page.html", "w") as file:
    file.write('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>pages</title></head><body>\n')
    for _ in range(size):
        kind = draw.randrange(4)
        if kind == 0:
            file.write("<ul>%s</ul>\n" % "".join("<li>%s</li>" % says(5) for _ in range(draw.randrange(1, 7))))
        elif kind == 1:
            file.write("<table>%s</table>\n" % "".join("<tr><td>%s</td><td>%s</td></tr>" % (says(3), says(2)) for _ in range(4)))
        else:
            file.write('<p class="c%d">%s</p>\n' % (kind, says(draw.randrange(5, 30))))
    file.write("</body></html>\n")
