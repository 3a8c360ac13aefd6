"""One thread counts letters in a counter that locks every single step."""

import json
import os
import sys
import threading
import time

FIX = "--fix" in sys.argv  # count without, add under the lock
SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Counter:
    def __init__(self):
        self.lock = threading.Lock()  # LOCK
        self.value = 0


def count(counter, letters):
    lock = counter.lock
    if FIX:
        value = 0
        for letter in letters:
            value += letter
        with lock:
            counter.value += value
        return
    for letter in letters:
        with lock:  # VICTIM CULPRIT
            counter.value += letter


def main():
    counter = Counter()
    letters = bytes(range(256)) * int(9_000 * SCALE)
    begun = time.perf_counter()
    count(counter, letters)
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "value": counter.value}))


if __name__ == "__main__":
    main()
