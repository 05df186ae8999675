"""Writes words.dic and words.aff, and text.txt of SIZE lines."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])

letters = "etaoinshrdlu"
stems = sorted({"".join(draw.choice(letters) for _ in range(draw.randrange(3, 9))) for _ in range(min(400 * size, 20000))})
with open("words.aff", "w") as file:
    file.write("SET UTF-8\nTRY %s\n" % letters)
    for flag in "ABC":
        endings = ["s", "ed", "ing", "ion", "er"]
        file.write("SFX %s Y %d\n" % (flag, len(endings)))
        for ending in endings:
            file.write("SFX %s 0 %s%s .\n" % (flag, draw.choice(["", "t"]), ending))
with open("words.dic", "w") as file:
    file.write("%d\n" % len(stems))
    for stem in stems:
        file.write("%s/%s\n" % (stem, draw.choice("ABC")))
with open("text.txt", "w") as file:
    for _ in range(size):
        words = [draw.choice(stems) + draw.choice(["", "", "s", "ing", "xq"]) for _ in range(9)]
        file.write(" ".join(words) + "\n")
