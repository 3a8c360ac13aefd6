"""Orders are matched in short pure-Python sections under an RLock, thousands of them."""

import collections
import json
import os
import sys
import threading
import time

FIX = "--fix" in sys.argv  # matched by one thread; no lock, and as fast
SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Book:
    def __init__(self):
        self.guard = threading.RLock()  # LOCK
        self.bids = collections.deque(range(200))
        self.trades = 0

    def match(self, price):
        best = 0
        for bid in self.bids:
            if best < bid <= price:
                best = bid
        self.trades += best
        self.bids.rotate(1)

    def trade(self, price):
        with self.guard:  # VICTIM
            self.match(price)  # CULPRIT


def trader(book, prices):
    for price in prices:
        book.trade(price)


def trader_alone(book, prices):
    for price in prices:
        book.match(price)


def main():
    book, count = Book(), int(90_000 * SCALE)
    if FIX:
        threads = [threading.Thread(target=trader_alone, args=(book, range(4 * (count // 4))))]
    else:
        threads = [
            threading.Thread(target=trader, args=(book, range(count // 4))) for _ in range(4)
        ]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "trades": book.trades}))


if __name__ == "__main__":
    main()
