"""Writes design.v: SIZE modules of arithmetic and registers, and one that connects them."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])
with open("design.v", "w") as file:
    for number in range(size):
        file.write("module part%d(input clock, input [15:0] a, input [15:0] b, output reg [15:0] y);\n" % number)
        file.write("  reg [15:0] kept;\n  always @(posedge clock) begin\n    kept <= a %s b;\n" % draw.choice("+-^&|"))
        file.write("    case (a[3:0])\n")
        for value in range(15):
            file.write("      4'd%d: y <= (a + 16'd%d) %s (kept >> %d);\n" % (value, draw.randrange(65536), draw.choice("+-^&|"), draw.randrange(8)))
        file.write("      default: y <= a * 16'd%d;\n    endcase\n  end\nendmodule\n" % draw.randrange(3, 999, 2))
    file.write("module top(input clock, input [15:0] a, input [15:0] b, output [15:0] y);\n")
    file.write("".join("  wire [15:0] y%d;\n" % number for number in range(size)))
    for number in range(size):
        first = "a" if number == 0 else "y%d" % draw.randrange(number)
        file.write("  part%d p%d(clock, %s, b, y%d);\n" % (number, number, first, number))
    file.write("  assign y = %s;\nendmodule\n" % " ^ ".join("y%d" % number for number in range(size)))
