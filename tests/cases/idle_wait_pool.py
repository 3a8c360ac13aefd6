"""A pool of a dozen threads is given a small job now and then, and an event ends a watchdog."""

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

SCALE = float(os.environ.get("CASE_SCALE", "1"))


def job(number):
    return sum(range(number * 100))


def watchdog(stop, beats):
    while not stop.wait(0.2 * SCALE):
        beats.append(time.monotonic())


def main():
    stop, beats, total = threading.Event(), [], 0
    watching = threading.Thread(target=watchdog, args=(stop, beats))
    watching.start()
    with ThreadPoolExecutor(12) as pool:  # LOCK
        for _ in range(12):
            list(pool.map(job, range(12)))
        for number in range(25):
            time.sleep(0.035 * SCALE)
            total += pool.submit(job, number).result()
    stop.set()
    watching.join()
    print(json.dumps({"total": total, "beats": len(beats)}))


if __name__ == "__main__":
    main()
