"""Workers look into a table; if it is just being renewed they compute the entry themselves."""

import json
import os
import sys
import threading
import time

FIX = "--fix" in sys.argv  # one thread: no more can run at a time
SCALE = float(os.environ.get("CASE_SCALE", "1"))
WORKERS, ENTRIES = 1 if FIX else 3, 120


def compute(number):
    value = 0
    for step in range(9000):
        value ^= step * number  # VICTIM CULPRIT
    return value


def renew(table, stop):
    while not stop.is_set():
        with table:
            time.sleep(0.004 * SCALE)
        time.sleep(0.006 * SCALE)


def work(table, values):
    for number in range(int(ENTRIES * SCALE)):
        if table.acquire(blocking=False):
            table.release()
        else:
            values.append(compute(number))
        values.append(compute(number + 1))


def main():
    table, stop, values = threading.Lock(), threading.Event(), []
    renewing = threading.Thread(target=renew, args=(table, stop))
    workers = [threading.Thread(target=work, args=(table, values)) for _ in range(WORKERS)]
    begun = time.perf_counter()
    for thread in (renewing, *workers):
        thread.start()
    for thread in workers:
        thread.join()
    stop.set()
    renewing.join()
    print(
        json.dumps(
            {"fix": FIX, "wall": round(time.perf_counter() - begun, 3), "values": len(values)}
        )
    )


if __name__ == "__main__":
    main()
