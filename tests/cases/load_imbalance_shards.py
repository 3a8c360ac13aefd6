"""A step ends when its slowest shard does; one shard has most of the rows."""

import json
import os
import sys
import threading
import time

import numpy as np

FIX = "--fix" in sys.argv  # equal shards
SCALE = float(os.environ.get("CASE_SCALE", "1"))
STEPS, ROWS = 22, 400_000


def shards(count):
    if FIX:
        return [ROWS // count] * count
    small = ROWS // 12
    return [small] * (count - 1) + [ROWS - (count - 1) * small]


def work(rows, meeting, values):
    for _ in range(STEPS):
        for _ in range(6):
            np.sin(values[:rows], out=values[:rows])  # CULPRIT
        meeting.wait()  # VICTIM


def main():
    sizes = shards(4)
    meeting = threading.Barrier(len(sizes))  # LOCK
    rows = int(SCALE * ROWS)
    threads = [
        threading.Thread(target=work, args=(int(size * SCALE), meeting, np.ones(rows)))
        for size in sizes
    ]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"fix": FIX, "wall": round(time.perf_counter() - begun, 3)}))


if __name__ == "__main__":
    main()
