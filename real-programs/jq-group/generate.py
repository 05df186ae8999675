"""Writes events.json: SIZE records for jq to group."""
import json
import random
import sys

draw = random.Random(int(sys.argv[1]))
with open("events.json", "w") as file:
    for number in range(int(sys.argv[2])):
        event = {
            "user": "user%d" % draw.randrange(1000),
            "kind": draw.choice(["open", "read", "write", "close"]),
            "bytes": draw.randrange(100000),
            "tags": ["tag%d" % draw.randrange(50) for _ in range(draw.randrange(4))],
        }
        file.write(json.dumps(event) + "\n")
