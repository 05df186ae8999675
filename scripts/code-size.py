#!/usr/bin/env python3
"""How large the code is, and how entangled. Prints for each crate its production files, code lines, tokens and tokens per
line, then the cycles of files that import each other and the names of types that are defined more than twice.

    code-size.py [ROOT]     a checkout (default: this one)

A token is an identifier, a literal or a punctuation mark. Comments, blank lines and tests are left out: folders and files named
`tests`, and items marked `#[cfg(test)]`. A file imports another one if a path in it leads to an item that is defined there; a path through a
re-export leads to where the item is defined. That a `mod.rs` names its own children counts for nothing: it is their list.
"""

import collections
import pathlib
import re
import sys

TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<literal>b?r(?P<hashes>\#*)".*?"(?P=hashes)|[bc]?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\])'|\d[\w]*(?:\.\d[\w]*)?)
    |(?P<word>'?[A-Za-z_]\w*|r\#\w+)
    |(?P<sign>.)""",
    re.S | re.X,
)
DEFINED = re.compile(r"\b(struct|enum|union|trait|type|fn|const|static|mod|macro_rules!)\s+(?:mut\s+)?(\w+)")
TYPES = ("struct", "enum", "union", "trait", "type")
# The crates of the host: the core, what it stands on, features above it, and the command line above all.
HOST = ("catalog", "build", "plan", "observe", "core", "check", "capture", "pool", "history", "which", "tune", "claims", "heapmark")


def tokens(text):
    """[(token, line)] of code, without comments."""
    found = []
    line = 1
    for match in TOKEN.finditer(text):
        if match.lastgroup not in ("space", "comment"):
            found.append((match.group(), line))
        line += match.group().count("\n")
    return found


def end_of_item(code, place):
    """The end of the item that begins at `place`: after its closing brace or semicolon."""
    depth = 0
    while place < len(code):
        token = code[place][0]
        depth += token in "([{" if len(token) == 1 else 0
        depth -= token in ")]}" if len(token) == 1 else 0
        place += 1
        if depth == 0 and token in ("}", ";"):
            return place
    return place


def production(text):
    """Tokens of a file without the code that is compiled only for tests."""
    code, kept, place = tokens(text), [], 0
    while place < len(code):
        ahead = "".join(token for token, _ in code[place:place + 7])
        if ahead == "#[cfg(test)]":
            place = end_of_item(code, place + 7)
        else:
            kept.append(code[place])
            place += 1
    return kept


def types(code):
    """Names of the types that a file defines. The associated types of an `impl` are left out: the trait names them."""
    kept, place = [], 0
    while place < len(code):
        token = code[place][0]
        if token == "impl" and (place == 0 or code[place - 1][0] in ("}", ";", "{", "]", "unsafe")):
            body = next(at for at in range(place, len(code)) if code[at][0] == "{")
            end = end_of_item(code, body)
            kept += [word for word, _ in code[place:end] if word != "type"]
            place = end
        else:
            kept.append(token)
            place += 1
    return [name for kind, name in DEFINED.findall(" ".join(kept)) if kind in TYPES and name[0].isupper()]


class Crate:
    def __init__(self, folder):
        self.name = folder.name
        self.files = {}
        for path in sorted((folder / "src").rglob("*.rs")):
            parts = path.relative_to(folder / "src").parts
            if "tests" in parts or parts[-1] == "tests.rs":
                continue
            module = tuple(part.removesuffix(".rs") for part in parts)
            module = module[:-1] if module[-1] in ("mod", "lib", "main") else module
            code = production(path.read_text(encoding="utf-8"))
            if code and not (parts[-1] == "main.rs" and (folder / "src/lib.rs").exists()):
                self.files[module] = code

    def defined(self):
        """{module: {name: kind}} of the items at any depth of a file."""
        found = {}
        for module, code in self.files.items():
            words = " ".join(token for token, _ in code)
            found[module] = {name: kind for kind, name in DEFINED.findall(words)}
        return found


def paths(words):
    """Each path of a `use`, with its braces spread out, as (names, alias)."""
    def spread(prefix, place):
        names = list(prefix)
        while place < len(words):
            word = words[place]
            if word == "{":
                place += 1
                while words[place] != "}":
                    place = yield from spread(names, place)
                    if words[place] == ",":
                        place += 1
                return place + 1
            if word == "as":
                yield names, words[place + 1]
                return place + 2
            if word in ",;}":
                yield names, names[-1]
                return place
            if word != ":":
                names = names + [word]
            place += 1
        return place
    yield from spread([], 0)


def imports(crate):
    """{file: {file that it imports}}."""
    defined = crate.defined()
    doors = collections.defaultdict(dict)
    uses = collections.defaultdict(list)
    for module, code in crate.files.items():
        words = [token for token, _ in code]
        place = 0
        while place < len(words):
            if words[place] == "use" and (place == 0 or words[place - 1] in ";{})]" or words[place - 1] in ("pub", ")")):
                end = words.index(";", place)
                public = place > 0 and words[place - 1] in ("pub", ")")
                for names, alias in paths(words[place + 1:end + 1]):
                    if public:
                        doors[module][alias] = names
                    else:
                        uses[module].append(names)
                place = end
            elif words[place] in ("crate", "super") and words[place + 1:place + 3] == [":", ":"]:
                names = [words[place]]
                while words[place + 1:place + 3] == [":", ":"] and place + 3 < len(words) and re.match(r"\w", words[place + 3]):
                    names.append(words[place + 3])
                    place += 3
                uses[module].append(names)
            place += 1

    def resolve(module, names, depth=0):
        here = module
        names = list(names)
        if depth > 8 or not names:
            return None
        if names[0] == "crate":
            here, names = (), names[1:]
        elif names[0] in ("self", "super"):
            while names and names[0] in ("self", "super"):
                here = here[:-1] if names[0] == "super" else here
                names = names[1:]
        elif here + (names[0],) not in crate.files and names[0] not in doors[here]:
            return None
        while names:
            name = names[0]
            if name == "self":
                return here
            if here + (name,) in crate.files:
                here, names = here + (name,), names[1:]
            elif name in doors[here] and doors[here][name] != names:
                return resolve(here, doors[here][name] + names[1:], depth + 1)
            else:
                return here if name in defined.get(here, {}) else None
        return here

    edges = collections.defaultdict(set)
    for module, all_names in uses.items():
        for names in all_names:
            target = resolve(module, names)
            if target is not None and target != module and target in crate.files:
                edges[module].add(target)
    return edges


def circles(edges):
    """Strongly connected sets of at least two files (Tarjan)."""
    sys.setrecursionlimit(10_000)
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in edges.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = []
            while True:
                group.append(stack.pop())
                if group[-1] == node:
                    break
            if len(group) > 1:
                found.append(sorted("::".join(module) or "lib" for module in group))

    for node in list(edges):
        if node not in index:
            visit(node)
    return sorted(found, key=len, reverse=True)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    crates = [Crate(folder) for folder in sorted((root / "crates").iterdir()) if (folder / "src").is_dir()]
    crates = [crate for crate in crates if crate.files]
    print(f"{'crate':20} {'files':>6} {'lines':>7} {'tokens':>8} {'per line':>9}")
    total = collections.Counter()
    host = collections.Counter()
    for crate in crates:
        count = collections.Counter(files=len(crate.files))
        for code in crate.files.values():
            count.update(lines=len({line for _, line in code}), tokens=len(code))
        total += count
        if crate.name in HOST + ("stats", "trace"):
            host += count
        show(crate.name, count)
    show("host, stats, trace", host)
    show("all", total)
    for crate in crates:
        for circle in circles(imports(crate)):
            print(f"cycle of {len(circle)} in {crate.name}: {', '.join(circle)}")
    names = collections.Counter()
    for crate in crates:
        for code in crate.files.values():
            names.update(types(code))
    often = [f"{name} {times}" for name, times in names.most_common() if times > 2]
    print(f"types defined more than twice: {', '.join(often) or 'none'}")


def show(name, count):
    print(f"{name:20} {count['files']:6} {count['lines']:7} {count['tokens']:8} {count['tokens'] / max(count['lines'], 1):9.2f}")


if __name__ == "__main__":
    main()
