"""An index is built in pure Python under a lock: threads queue for it, but the GIL is the limit."""

import json
import os
import sys
import threading
import time

FIX = "--fix" in sys.argv  # the words are prepared, so there is little left to do
DROP = "--drop" in sys.argv  # an index for each thread, no lock: no faster
SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Index:
    def __init__(self):
        self.lock = threading.Lock()  # LOCK
        self.words = {}

    def insert(self, number, words):
        if FIX or DROP:
            self._insert(number, words)
            return
        with self.lock:  # VICTIM
            self._insert(number, words)  # CULPRIT

    def _insert(self, number, words):
        for position, word in enumerate(words):
            self.words.setdefault(word, []).append((number, position))


def build(index, numbers, words):
    for number in numbers:
        index.insert(number, words)


def main():
    words = [f"word {n % 50}" for n in range(60 if FIX else 6000)]
    shared = Index()
    indexes = [Index() if FIX or DROP else shared for _ in range(4)]
    threads = [
        threading.Thread(target=build, args=(index, range(k, int(240 * SCALE), 4), words))
        for k, index in enumerate(indexes)
    ]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"fix": FIX, "drop": DROP, "wall": round(time.perf_counter() - begun, 3)}))


if __name__ == "__main__":
    main()
