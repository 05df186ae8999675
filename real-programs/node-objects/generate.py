"""Writes work.js, which groups SIZE records."""
import sys

seed, size = int(sys.argv[1]), int(sys.argv[2])
with open("work.js", "w") as file:
    file.write("let state = %d;\nconst SIZE = %d;\n" % (seed, size))
    file.write("""const next = () => (state = (state * 1103515245 + 12345) % 2147483648);
const groups = new Map();
for (let at = 0; at < SIZE; at++) {
    const record = { id: at, name: `name${next() % 5000}`, tags: [] };
    for (let tag = 0; tag < next() % 6; tag++) record.tags.push(`t${next() % 97}`);
    if (!groups.has(record.name)) groups.set(record.name, []);
    groups.get(record.name).push(record);
}
const text = JSON.stringify([...groups].sort((a, b) => (a[0] < b[0] ? -1 : 1)));
const back = JSON.parse(text);
console.log(back.length, text.length, Buffer.from(text).reduce((sum, byte) => (sum * 31 + byte) % 1000003, 7));
""")
