"""Writes unit.c: SIZE functions with loops, branches and tables."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
with open("unit.c", "w") as file:
    for number in range(int(sys.argv[2])):
        table = ", ".join(str(draw.randrange(1000)) for _ in range(16))
        file.write('''static const int table%(n)d[16] = {%(table)s};
int function%(n)d(int a, const int *values, int count) {
  int sum = a;
  for (int at = 0; at < count; at++) {
    if (values[at] %% %(odd)d == %(rest)d) sum += table%(n)d[values[at] & 15] * %(odd)d;
    else switch (values[at] & 7) { case 0: sum ^= at; break; case 3: sum -= %(rest)d; break; default: sum += values[at]; }
  }
  return sum > %(odd)d ? sum : %(call)s;
}
''' % {"n": number, "table": table, "odd": draw.randrange(3, 99, 2), "rest": draw.randrange(3),
       "call": "function%d(sum, values, count - 1)" % draw.randrange(number) if number and draw.randrange(2) else "-sum"})
