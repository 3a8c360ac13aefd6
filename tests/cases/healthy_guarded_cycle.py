"""Two locks in both orders, but always under a third; and rows locked in the order of their ids."""

import json
import os
import random
import threading
import time

SCALE = float(os.environ.get("CASE_SCALE", "1"))
gate = threading.Lock()
left, right = threading.Lock(), threading.Lock()


class Row:
    def __init__(self, amount):
        self.lock = threading.Lock()
        self.amount = amount


def move(source, target, amount):
    first, second = sorted((source, target), key=id)
    with first.lock, second.lock:
        source.amount -= amount
        target.amount += amount


def worker(rows, seed, steps):
    chance = random.Random(seed)
    for step in range(steps):
        time.sleep(0.002 * SCALE)
        one, other = (left, right) if (step + seed) % 2 else (right, left)
        with gate, one, other:
            pass
        move(*chance.sample(rows, 2), 1)


def main():
    rows = [Row(10) for _ in range(40)]
    threads = [threading.Thread(target=worker, args=(rows, seed, 250)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"sum": sum(row.amount for row in rows)}))


if __name__ == "__main__":
    main()
