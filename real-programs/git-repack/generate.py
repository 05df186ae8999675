"""Writes a repository of SIZE commits, through `git fast-import`."""
import random
import subprocess
import sys

draw = random.Random(int(sys.argv[1]))
subprocess.run(["git", "init", "-q", "-b", "main", "repository"], check=True)
settings = {"gc.auto": "0", "pack.threads": "2", "user.name": "Author", "user.email": "author@example.org"}
for key, value in settings.items():
    subprocess.run(["git", "-C", "repository", "config", key, value], check=True)
files = {"file%d.txt" % number: ["line %d" % draw.randrange(10**6) for _ in range(150)] for number in range(60)}
stream = []
for number in range(int(sys.argv[2])):
    message = "change %d" % number
    stream.append("commit refs/heads/main\ncommitter Author <author@example.org> %d +0000\n" % (1700000000 + number * 60))
    stream.append("data %d\n%s\n" % (len(message), message))
    changed = list(files) if number == 0 else [draw.choice(list(files)) for _ in range(3)]
    for name in sorted(set(changed)):
        lines = files[name]
        lines[draw.randrange(len(lines))] = "line %d of %d" % (draw.randrange(10**6), number)
        if draw.randrange(4) == 0:
            lines.insert(draw.randrange(len(lines)), "new %d" % draw.randrange(10**6))
        text = "\n".join(lines) + "\n"
        stream.append("M 100644 inline %s\ndata %d\n%s\n" % (name, len(text), text))
stream.append("done\n")
subprocess.run(
    ["git", "-C", "repository", "fast-import", "--quiet", "--done"],
    input="".join(stream).encode(),
    check=True,
)
