"""Controllers tick every millisecond, if the threads that write reports let them have the GIL."""

import json
import os
import select
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

FIX = "--fix" in sys.argv  # the reports are written afterwards
SCALE = float(os.environ.get("CASE_SCALE", "1"))


def control(ticks):
    late = 0.0
    source, sink = os.pipe()
    for _ in range(ticks):
        begun = time.perf_counter()
        select.select([source], [], [], 0.001)  # VICTIM
        late += time.perf_counter() - begun - 0.001
    os.close(source)
    os.close(sink)
    return late


def report(stop, lines):
    while not stop.is_set():
        lines.append(" ".join(str(number * number) for number in range(3000)))  # CULPRIT
        del lines[:-5]


def main():
    stop, lines = threading.Event(), []
    reporters = [threading.Thread(target=report, args=(stop, lines)) for _ in range(2)]
    begun = time.perf_counter()
    with ThreadPoolExecutor(3) as pool:
        late = pool.map(control, [int(60 * SCALE)] * 3)
        if not FIX:
            for thread in reporters:
                thread.start()
        late = sum(late)
    wall = time.perf_counter() - begun
    stop.set()
    if not FIX:
        for thread in reporters:
            thread.join()
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "late": round(late, 3)}))


if __name__ == "__main__":
    main()
