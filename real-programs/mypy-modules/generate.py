"""Writes SIZE modules with classes and functions that use earlier ones."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])

for module in range(size):
    with open("module%d.py" % module, "w") as file:
        file.write("from __future__ import annotations\n")
        earlier = draw.randrange(module) if module else None
        if earlier is not None:
            file.write("import module%d\n" % earlier)
        for at in range(12):
            base = "(module%d.Class%d)" % (earlier, at) if earlier is not None else ""
            file.write("class Class%d%s:\n    def __init__(self, values: list[int], names: dict[str, int]) -> None:\n" % (at, base))
            file.write("        self.values, self.names = values, names\n")
            for method in range(6):
                file.write("    def method%d(self, key: str) -> int:\n        found = [it * %d for it in self.values if it > self.names.get(key, 0)]\n"
                           "        return sum(found) + len(key)\n" % (method, draw.randrange(99)))
