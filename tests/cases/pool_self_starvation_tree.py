"""Sizes of folders are computed by tasks that wait for tasks of their own pool."""

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor, wait

FIX = "--fix" in sys.argv  # leaves go to a pool of their own
SCALE = float(os.environ.get("CASE_SCALE", "1"))
PATIENCE_S = 0.35 * SCALE


class Sizes:
    def __init__(self, workers):
        self.pool = ThreadPoolExecutor(workers)
        self.leaves = ThreadPoolExecutor(workers) if FIX else self.pool
        self.missing = 0

    def leaf(self, size):
        time.sleep(0.004 * SCALE)
        return size

    def folder(self, name):
        sizes = [self.leaves.submit(self.leaf, len(name) + n) for n in range(4)]
        done, late = wait(sizes, timeout=PATIENCE_S)  # VICTIM CULPRIT
        self.missing += len(late)
        return sum(future.result() for future in done)


def main():
    sizes = Sizes(3)
    begun = time.perf_counter()
    total = sum(sizes.pool.map(sizes.folder, ("home", "media", "backup", "mail", "code", "tmp")))
    wall = time.perf_counter() - begun
    sizes.pool.shutdown()
    sizes.leaves.shutdown()
    row = {"fix": FIX, "wall": round(wall, 3), "total": total, "missing": sizes.missing}
    print(json.dumps(row))


if __name__ == "__main__":
    main()
