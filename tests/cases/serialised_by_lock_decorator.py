"""A decorator locks whole methods of a feature table; the columns are computed one at a time."""

import functools
import json
import os
import sys
import threading
import time

import numpy as np

FIX = "--fix" in sys.argv  # only what touches the shared table is locked
SCALE = float(os.environ.get("CASE_SCALE", "1"))


def synchronized(method):
    @functools.wraps(method)
    def wrapper(self, *args):
        with self.mutex:  # VICTIM
            return method(self, *args)

    return wrapper


class FeatureTable:
    def __init__(self, rows):
        self.mutex = threading.Lock()  # LOCK
        self.columns = {}
        self.raw = np.linspace(0.1, 9.0, rows)

    def column(self, power):
        value = self.raw * power
        for _ in range(int(12 * SCALE)):
            np.sin(value, out=value)  # CULPRIT
        return value

    @synchronized
    def add(self, power):
        self.columns[power] = self.column(power)

    @synchronized
    def store(self, power, value):
        self.columns[power] = value


def build(table, powers):
    for power in powers:
        if FIX:
            table.store(power, table.column(power))
        else:
            table.add(power)


def main():
    table = FeatureTable(80_000)
    powers = [1 + n / 100 for n in range(48)]
    threads = [threading.Thread(target=build, args=(table, powers[k::3])) for k in range(3)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "columns": len(table.columns)}))


if __name__ == "__main__":
    main()
