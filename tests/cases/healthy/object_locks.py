"""A thousand objects, each with a lock, used by threads at random: they hardly meet."""

import os
import random
import threading
import time

SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Cell:
    __slots__ = ("lock", "value")

    def __init__(self):
        self.lock = threading.Lock()
        self.value = 0


def visit(cells, seed):
    chance = random.Random(seed)
    for _ in range(160):
        cell = chance.choice(cells)
        with cell.lock:
            time.sleep(0.002 * SCALE)
            cell.value += 1
        time.sleep(0.002 * SCALE)


def main():
    cells = [Cell() for _ in range(1000)]
    threads = [threading.Thread(target=visit, args=(cells, seed)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sum(cell.value for cell in cells))


if __name__ == "__main__":
    main()
