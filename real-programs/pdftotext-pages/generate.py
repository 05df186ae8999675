"""Writes pages.pdf: SIZE pages of words at places of their own."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])

words = ["stone", "river", "of", "the", "light", "window", "a", "counted", "leaves", "never"]
objects = []
kids = " ".join("%d 0 R" % (4 + 2 * page) for page in range(size))
objects.append("<< /Type /Catalog /Pages 2 0 R >>")
objects.append("<< /Type /Pages /Count %d /Kids [%s] >>" % (size, kids))
objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
for page in range(size):
    lines = []
    for line in range(60):
        for column in range(6):
            text = " ".join(draw.choice(words) for _ in range(3))
            lines.append("BT /F1 7 Tf %d %d Td (%s) Tj ET" % (30 + 90 * column + draw.randrange(6), 780 - 12 * line, text))
    stream = "\n".join(lines)
    objects.append("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>" % (5 + 2 * page))
    objects.append("<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
with open("pages.pdf", "wb") as file:
    file.write(b"%PDF-1.4\n")
    places = []
    for at, text in enumerate(objects):
        places.append(file.tell())
        file.write(("%d 0 obj\n%s\nendobj\n" % (at + 1, text)).encode())
    table = file.tell()
    file.write(("xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)).encode())
    file.write("".join("%010d 00000 n \n" % place for place in places).encode())
    file.write(("trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, table)).encode())
