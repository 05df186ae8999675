"""Writes design.v: SIZE small processors in a chain."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])
with open("design.v", "w") as file:
    for number in range(size):
        file.write("module core%d(input clock, input [31:0] in, output reg [31:0] out);\n  reg [31:0] held [0:15];\n  reg [3:0] at;\n" % number)
        file.write("  always @(posedge clock) begin\n    at <= at + 4'd1;\n    held[at] <= in;\n    case (in[4:0])\n")
        for code in range(20):
            file.write("      5'd%d: out <= held[at %s 4'd%d] %s 32'h%x;\n" % (
                code, draw.choice("+-^"), draw.randrange(16), draw.choice("+-^&|*"), draw.getrandbits(32)))
        file.write("      default: out <= {in[%d:0], in[31:%d]};\n    endcase\n  end\nendmodule\n" % ((lambda cut: (cut, cut + 1))(draw.randrange(30))))
    file.write("module top(input clock, input [31:0] in, output [31:0] out);\n")
    for number in range(size):
        file.write("  wire [31:0] w%d;\n  core%d c%d(clock, %s, w%d);\n" % (number, number, number, "in" if number == 0 else "w%d" % (number - 1), number))
    file.write("  assign out = w%d;\nendmodule\n" % (size - 1))
