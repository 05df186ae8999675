"""Writes text.txt (SIZE lines) and count.awk."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
with open("text.txt", "w") as file:
    for _ in range(int(sys.argv[2])):
        words = ("w%d%s" % (draw.randrange(20000), "x" * draw.randrange(20)) for _ in range(8))
        file.write(" ".join(words) + "\n")
with open("count.awk", "w") as file:
    file.write('''{
  for (at = 1; at <= NF; at++) {
    count[$at]++
    places[substr($at, 1, 4)] = places[substr($at, 1, 4)] " " NR
    if (at > 1) pairs[$(at - 1), $at]++
  }
}
END {
  for (word in count) { words++; if (count[word] > most) most = count[word] }
  for (pair in pairs) { split(pair, both, SUBSEP); joined[both[2] ":" toupper(both[1])] = pairs[pair] }
  for (start in places) bytes += length(places[start])
  print words, most, length(joined), bytes
}
''')
