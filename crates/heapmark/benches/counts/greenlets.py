from greenlet import greenlet

def work(number):
    for step in range(200):
        text = str(step) * (number + 1)
        main.switch()

main = greenlet.getcurrent()
all_of_them = [greenlet(work) for _ in range(30)]
for _ in range(201):
    for number, one in enumerate(all_of_them):
        if not one.dead:
            one.switch(number)
