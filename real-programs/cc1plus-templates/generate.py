"""Writes unit.cc: SIZE classes and functions over the containers of the standard library."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
kinds = ["int", "long", "double", "std::string", "std::vector<int>", "std::pair<int, std::string>"]
with open("unit.cc", "w") as file:
    file.write("#include <algorithm>\n#include <map>\n#include <string>\n#include <utility>\n#include <vector>\n\n")
    for number in range(int(sys.argv[2])):
        kind = draw.choice(kinds)
        file.write('''template <int Depth> struct Tree%(n)d {
  std::map<int, %(kind)s> values;
  Tree%(n)d<Depth - 1> below;
  std::size_t count() const { return values.size() + below.count(); }
  void fill(int more) { for (int at = 0; at < more; at++) values[at * %(step)d] = %(kind)s(); below.fill(more - 1); }
};
template <> struct Tree%(n)d<0> {
  std::vector<%(kind)s> values;
  std::size_t count() const { return values.size(); }
  void fill(int more) { values.resize(more > 0 ? more : 0); }
};
std::size_t count%(n)d(int more) {
  Tree%(n)d<%(depth)d> tree;
  tree.fill(more);
  std::vector<std::pair<int, std::size_t>> all;
  for (int at = 0; at < more; at++) all.emplace_back(at ^ %(step)d, tree.count());
  std::sort(all.begin(), all.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
  return all.empty() ? 0 : all.front().second;
}
''' % {"n": number, "kind": kind, "step": draw.randrange(1, 99), "depth": draw.randrange(3, 9)})
