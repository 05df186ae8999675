"""Writes unit.cpp: SIZE classes with methods that branch and loop."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
with open("unit.cpp", "w") as file:
    file.write("#include <string>\n#include <vector>\n")
    for number in range(int(sys.argv[2])):
        file.write("class Order%d {\npublic:\n  explicit Order%d(int start) : total(start) {}\n" % (number, number))
        for method in range(8):
            file.write("  int step%d(int a, int b) {\n    int sum = %d;\n" % (method, draw.randrange(100)))
            for _ in range(4):
                file.write("    if (a %s %d) { sum += b * %d; } else { sum -= total / %d; }\n" % (
                    draw.choice("<>"), draw.randrange(1000), draw.randrange(2, 90), draw.randrange(2, 9)))
            file.write("    for (int at = 0; at < b; at++) { items.push_back(sum + at); names += \"x\"; }\n    return sum;\n  }\n")
        file.write("private:\n  int total;\n  std::vector<int> items;\n  std::string names;\n};\n")
