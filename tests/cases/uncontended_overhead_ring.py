"""Two threads, each with a ring of its own that locks (re-entrantly) on every access."""

import json
import os
import sys
import threading
import time

FIX = "--fix" in sys.argv  # a ring that one thread owns needs no lock
SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Ring:
    def __init__(self, size):
        self.guard = threading.RLock()  # LOCK
        self.items, self.at = [0] * size, 0

    def push(self, item):
        with self.guard:  # VICTIM CULPRIT
            self.items[self.at] = item
            self.at = (self.at + 1) % 64


class OwnRing(Ring):
    def push(self, item):
        self.items[self.at] = item
        self.at = (self.at + 1) % 64


def sample(count, rings):
    ring = OwnRing(64) if FIX else Ring(64)
    push = ring.push
    for number in range(count):
        push(number)
    rings.append(ring)


def main():
    rings = []
    begun = time.perf_counter()
    for _ in range(2):
        thread = threading.Thread(target=sample, args=(int(1_100_000 * SCALE), rings))
        thread.start()
        thread.join()
    print(json.dumps({"fix": FIX, "wall": round(time.perf_counter() - begun, 3), "n": len(rings)}))


if __name__ == "__main__":
    main()
