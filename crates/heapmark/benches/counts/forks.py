import os

kept = [str(i) * 20 for i in range(20000)]
for _ in range(5):
    if os.fork() == 0:
        more = [str(i) * 50 for i in range(10000)]
        del kept
        os._exit(0)
[os.wait() for _ in range(5)]
