import json
import threading

def work():
    rows = [{"name": "row %d" % i, "values": [i * 0.5, str(i), None]} for i in range(5000)]
    json.loads(json.dumps(rows))

threads = [threading.Thread(target=work) for _ in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
