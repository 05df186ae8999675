"""Writes orders.json (SIZE records) and work.py, which reads, groups and writes them."""
import json
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])
words = ["word%d" % draw.randrange(10**9) for _ in range(2000)]
orders = [
    {
        "id": number,
        "customer": draw.choice(words),
        "price": draw.randrange(100000) / 100,
        "items": [draw.choice(words) for _ in range(draw.randrange(1, 8))],
        "address": {"street": draw.choice(words), "number": draw.randrange(200)},
    }
    for number in range(size)
]
with open("orders.json", "w") as file:
    json.dump(orders, file)
with open("work.py", "w") as file:
    file.write('''import hashlib
import json

with open("orders.json") as file:
    orders = json.load(file)
by_customer = {}
for order in orders:
    by_customer.setdefault(order["customer"], []).append(order)
totals = {}
for customer, of_customer in by_customer.items():
    items = sorted({item.upper() for order in of_customer for item in order["items"]})
    totals[customer] = {"sum": round(sum(order["price"] for order in of_customer), 2), "items": items}
for order in orders:
    order["label"] = ", ".join(order["items"]) + " for " + order["customer"]
text = json.dumps({"totals": totals, "orders": orders}, sort_keys=True)
again = json.loads(text)
print(len(again["orders"]), hashlib.sha256(text.encode()).hexdigest())
''')
