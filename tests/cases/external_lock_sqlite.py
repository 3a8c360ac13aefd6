"""Threads with connections of their own write to one SQLite file: they wait for its lock."""

import json
import os
import pathlib
import sqlite3
import sys
import tempfile
import threading
import time

FIX = "--fix" in sys.argv  # work first, a short transaction last
SCALE = float(os.environ.get("CASE_SCALE", "1"))


def price(item):
    time.sleep(0.012 * SCALE)  # asks a service
    return item * 3


def book(path, items):
    base = sqlite3.connect(path, timeout=30, isolation_level=None)
    base.execute("PRAGMA synchronous=OFF")
    for item in items:
        amount = price(item) if FIX else None
        base.execute("BEGIN IMMEDIATE")  # VICTIM
        amount = amount or price(item)  # CULPRIT
        base.execute("INSERT INTO sales VALUES (?, ?)", (item, amount))
        base.execute("COMMIT")
    base.close()


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "sales.db")
        base = sqlite3.connect(path)
        base.execute("CREATE TABLE sales (item, amount)")
        base.commit()
        threads = [threading.Thread(target=book, args=(path, range(k, 60, 5))) for k in range(1, 6)]
        begun = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wall = time.perf_counter() - begun
        (count,) = base.execute("SELECT count(*) FROM sales").fetchone()
        base.close()
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "sales": count}))


if __name__ == "__main__":
    main()
