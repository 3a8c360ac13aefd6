"""A shelf's lock is handed to a module that sweeps it: seldom, but slowly, and everybody waits."""

import json
import os
import random
import sys
import threading
import time

import stock_sweeper

FIX = "--fix" in sys.argv  # the warehouse is asked outside the lock
SCALE = float(os.environ.get("CASE_SCALE", "1"))
END_S = 1.0 * SCALE


class Shelf:
    def __init__(self):
        self.guard = threading.RLock()  # LOCK
        self.entries = {}

    def put(self, name, amount):
        with self.guard:  # VICTIM
            self.entries[name] = amount


def seller(shelf, end, sold):
    chance = random.Random(4)
    while time.monotonic() < end:
        shelf.put(chance.randrange(1000), 1)
        sold.append(1)
        time.sleep(0.002)


def janitor(shelf, end):
    sweep = stock_sweeper.sweep_outside if FIX else stock_sweeper.sweep
    while time.monotonic() < end:
        time.sleep(0.03 * SCALE)
        sweep(shelf.guard, shelf.entries, 0.016 * SCALE)  # CULPRIT


def main():
    shelf, sold = Shelf(), []
    end = time.monotonic() + END_S
    threads = [threading.Thread(target=seller, args=(shelf, end, sold)) for _ in range(7)]
    threads.append(threading.Thread(target=janitor, args=(shelf, end)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"fix": FIX, "sold": len(sold)}))


if __name__ == "__main__":
    main()
