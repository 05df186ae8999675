"""Whether a CSV file is one tidy table, and whether lines of Python open it with these columns, rows and types. Arguments: the file as
the lines name it, and the lines: `import MODULE; table = ...`. A line of a module that is not installed is skipped."""

import csv
import importlib.util
import json
import sys

NUMBERS = {"threads", "median", "min", "max", "n", "ratio", "low", "high"}
KINDS = ("int", "uint", "float", "double", "bigint", "ubigint")

name, *lines = sys.argv[1:]
header, *rows = csv.reader(open(name, newline=""))
assert len(set(header)) == len(header) and NUMBERS < set(header), header
for row in rows:
    assert len(row) == len(header), f"ragged: {row}"
    for column, value in zip(header, row):
        if column in NUMBERS and value:
            float(value)

told = {"rows": len(rows), "read": [], "skipped": []}
for line in lines:
    module = line.split(";")[0].removeprefix("import ")
    if not importlib.util.find_spec(module):
        told["skipped"].append(module)
        continue
    scope = {}
    exec(line, scope)
    table = scope["table"]
    assert list(table.columns) == header, (module, table.columns)
    assert len(table) == len(rows), (module, len(table))
    # A column in which nothing stands has no type of its own.
    filled = {column for place, column in enumerate(header) if any(row[place] for row in rows)}
    for column, kind in zip(table.columns, map(str, table.dtypes)):
        is_number = kind.lower().startswith(KINDS)
        assert column not in filled or is_number == (column in NUMBERS), (module, column, kind)
    told["read"].append(module)
print(json.dumps(told))
