"""Writes a repository of SIZE commits, in which files are changed, renamed and copied, through `git fast-import`."""
import random
import subprocess
import sys

draw = random.Random(int(sys.argv[1]))
subprocess.run(["git", "init", "-q", "-b", "main", "repository"], check=True)
files = {"part%d.c" % number: ["int value%d;" % draw.randrange(10**6) for _ in range(80)] for number in range(20)}
stream = []


def put(name):
    text = "\n".join(files[name]) + "\n"
    stream.append("M 100644 inline %s\ndata %d\n%s\n" % (name, len(text), text))


for number in range(int(sys.argv[2])):
    stream.append("commit refs/heads/main\ncommitter Author <author@example.org> %d +0000\n" % (1700000000 + number * 60))
    stream.append("data <<END\nchange %d\nEND\n" % number)
    if number == 0:
        for name in sorted(files):
            put(name)
        continue
    for name in sorted(draw.sample(sorted(files), 3)):
        lines = files[name]
        lines[draw.randrange(len(lines))] = "int value%d; /* %d */" % (draw.randrange(10**6), number)
        put(name)
    if number % 10 == 0:
        old, new = draw.choice(sorted(files)), "moved%d.c" % number
        stream.append("R %s %s\n" % (old, new))
        files[new] = files.pop(old)
stream.append("done\n")
subprocess.run(
    ["git", "-C", "repository", "fast-import", "--quiet", "--done"],
    input="".join(stream).encode(),
    check=True,
)
