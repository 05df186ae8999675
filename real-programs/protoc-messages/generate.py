"""Writes messages.proto: SIZE messages that contain each other."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
with open("messages.proto", "w") as file:
    file.write('syntax = "proto3";\npackage shop;\n')
    for number in range(int(sys.argv[2])):
        file.write("// What a part of an order tells, kind %d.\nmessage Part%d {\n" % (number, number))
        for field in range(1, 13):
            kind = draw.choice(["int32", "string", "bytes", "double", "repeated int64", "repeated string"])
            if number and draw.random() < 0.3:
                kind = "Part%d" % draw.randrange(number)
            file.write("  // Field %d.\n  %s field_%d_%d = %d;\n" % (field, kind, number, field, field))
        file.write("  enum Kind%d { NONE%d = 0; SOME%d = 1; }\n}\n" % (number, number, number))
