"""Writes document.pdf: a page, and SIZE dictionaries that it refers to."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])
places = []
with open("document.pdf", "wb") as file:
    def add(text):
        places.append(file.tell())
        file.write(b"%d 0 obj\n%s\nendobj\n" % (len(places), text))

    file.write(b"%PDF-1.4\n")
    add(b"<< /Type /Catalog /Pages 2 0 R >>")
    add(b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>")
    parts = b" ".join(b"%d 0 R" % (number + 4) for number in range(size))
    add(b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Parts [" + parts + b"] >>")
    for number in range(size):
        values = b" ".join(b"%d.%d" % (draw.randrange(999), draw.randrange(9)) for _ in range(draw.randrange(4, 16)))
        add(b"<< /Name (part %d) /Values [%s] /Next %d 0 R /Kind /K%d >>" % (number, values, draw.randrange(size) + 4, draw.randrange(50)))
    start = file.tell()
    file.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1))
    for place in places:
        file.write(b"%010d 00000 n \n" % place)
    file.write(b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(places) + 1, start))
