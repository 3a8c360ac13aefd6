"""Readers lock cache, then statistics; a report the other way round. They never met yet."""

import json
import os
import sys
import threading
import time

FIX = "--fix" in sys.argv  # the report takes the locks in the readers' order
SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Cache:
    def __init__(self):
        self.lock = threading.Lock()  # LOCK
        self.entries = {n: str(n) for n in range(50)}


class Statistics:
    def __init__(self):
        self.lock = threading.Lock()  # LOCK 2
        self.hits = 0


def read(cache, statistics, count):
    for number in range(count):
        with cache.lock:
            value = cache.entries.get(number % 60)
            with statistics.lock:  # VICTIM CULPRIT
                statistics.hits += value is not None
        time.sleep(0.002 * SCALE)


def report(cache, statistics, lines):
    first, second = (cache, statistics) if FIX else (statistics, cache)
    with first.lock, second.lock:  # VICTIM CULPRIT
        lines.append((len(cache.entries), statistics.hits))


def main():
    cache, statistics, lines = Cache(), Statistics(), []
    for _ in range(4):
        reader = threading.Thread(target=read, args=(cache, statistics, 60))
        reader.start()
        reader.join()
        reporter = threading.Thread(target=report, args=(cache, statistics, lines))
        reporter.start()
        reporter.join()
    print(json.dumps({"fix": FIX, "lines": lines}))


if __name__ == "__main__":
    main()
