"""An empty database, and the statements of two connections: python3 generate.py SEED SIZE"""
import os
import random
import subprocess
import sys

seed, size = int(sys.argv[1]), int(sys.argv[2])

# --user is refused to all but root, who must name one.
user = ["--user=root"] if os.getuid() == 0 else []
subprocess.run(
    ["mariadb-install-db", "--no-defaults", f"--datadir={os.getcwd()}/data", "--skip-test-db", *user],
    check=True,
    stdout=subprocess.DEVNULL,
)

with open("schema.sql", "w") as schema:
    schema.write("CREATE DATABASE shop;\nUSE shop;\n")
    for table in ["first", "second"]:
        schema.write(
            f"CREATE TABLE {table} (id INT PRIMARY KEY, customer INT, item VARCHAR(80), "
            "price INT, note TEXT, KEY (customer));\n"
        )

WORDS = "paper ink desk lamp chair shelf clock frame brush stone wire glass".split()


def rows(numbers, start, count):
    for place in range(start, start + count):
        item = " ".join(numbers.choice(WORDS) for _ in range(numbers.randint(1, 8)))
        note = "x" * numbers.choice([0, 0, 20, 200, 2000])
        yield f"({place}, {numbers.randint(1, size // 10)}, '{item}', {numbers.randint(1, 9999)}, '{note}')"


for number, table in enumerate(["first", "second"]):
    numbers = random.Random(seed * 10 + number)
    with open(f"{table}.sql", "w") as out:
        for start in range(0, size, 50):
            out.write(f"INSERT INTO {table} VALUES {', '.join(rows(numbers, start, 50))};\n")
            customer = numbers.randint(1, size // 10)
            out.write(f"SELECT * FROM {table} WHERE customer = {customer} ORDER BY price;\n")
            out.write(f"UPDATE {table} SET price = price + 1, item = CONCAT(item, '!') WHERE customer = {customer};\n")
            if start % 500 == 0:
                out.write(
                    "SELECT customer, COUNT(*), SUM(price), GROUP_CONCAT(item ORDER BY item) "
                    f"FROM {table} GROUP BY customer ORDER BY SUM(price) DESC, customer LIMIT 20;\n"
                )
                out.write(f"DELETE FROM {table} WHERE price < {numbers.randint(1, 300)};\n")
        out.write(
            f"SELECT a.item, COUNT(*) FROM {table} a JOIN {table} b ON a.customer = b.customer "
            "GROUP BY a.item ORDER BY 2 DESC, a.item LIMIT 50;\n"
        )
