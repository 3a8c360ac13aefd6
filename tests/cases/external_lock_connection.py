"""Threads query one SQLite connection: its own mutex lets one in at a time, without the GIL."""

import json
import os
import sqlite3
import sys
import threading
import time

FIX = "--fix" in sys.argv  # a connection for each thread
SCALE = float(os.environ.get("CASE_SCALE", "1"))
REPORTS = max(2, int(24 * SCALE))
QUERY = "SELECT count(*) FROM sales WHERE price > 500 AND item IN (SELECT price FROM sales)"


def filled():
    base = sqlite3.connect(":memory:", check_same_thread=False)
    base.execute("CREATE TABLE sales (item, price)")
    rows = ((item, item * 7 % 1000) for item in range(24_000))
    base.executemany("INSERT INTO sales VALUES (?, ?)", rows)
    return base


def report(base, counts):
    for _ in range(REPORTS):
        counts.append(base.execute(QUERY).fetchone()[0])  # LOCK VICTIM CULPRIT


def main():
    shared = filled()
    bases = [filled() if FIX else shared for _ in range(4)]
    counts = []
    threads = [threading.Thread(target=report, args=(base, counts)) for base in bases]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "reports": len(counts)}))


if __name__ == "__main__":
    main()
