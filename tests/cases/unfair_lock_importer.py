"""A bulk import gives the table's permit back between rows, but nobody else ever gets a turn."""

import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

FIX = "--fix" in sys.argv  # the import steps back after each row
SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Table:
    def __init__(self):
        self.one_at_a_time = threading.BoundedSemaphore(1)  # LOCK
        self.rows = []

    def insert(self, row):
        self.one_at_a_time.acquire()  # VICTIM
        try:
            time.sleep(0.0006 * SCALE)  # CULPRIT
            self.rows.append(row)
        finally:
            self.one_at_a_time.release()


def bulk_import(table, count):
    for number in range(count):
        table.insert(number)
        if FIX:
            time.sleep(0.0014 * SCALE)


def edit(table):
    worst = 0.0
    for _ in range(12):
        time.sleep(0.012 * SCALE)  # a person thinks
        begun = time.perf_counter()
        table.insert("edit")
        worst = max(worst, time.perf_counter() - begun)
    return worst


def main():
    table = Table()
    begun = time.perf_counter()
    with ThreadPoolExecutor(4) as pool:
        edits = [pool.submit(edit, table) for _ in range(3)]
        pool.submit(bulk_import, table, 250 if FIX else 1300).result()
        worst = max(future.result() for future in edits)
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "worst_ms": round(worst * 1e3, 1)}))


if __name__ == "__main__":
    main()
