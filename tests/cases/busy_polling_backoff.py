"""A helper tries for a lock and sleeps when it is taken, long after it has become free again."""

import json
import os
import random
import sys
import threading
import time

FIX = "--fix" in sys.argv  # wait for it
SCALE = float(os.environ.get("CASE_SCALE", "1"))
NAP_S = 0.012 * SCALE


def take(lock):
    if FIX:
        lock.acquire()
        return
    while not lock.acquire(blocking=False):  # VICTIM CULPRIT
        time.sleep(NAP_S)


class Station:
    def __init__(self):
        self.radio = threading.Lock()  # LOCK
        self.calls = 0

    def call(self):
        take(self.radio)
        try:
            time.sleep(0.0005 * SCALE)
            self.calls += 1
        finally:
            self.radio.release()


def patrol(station, number):
    pauses = random.Random(number)  # so uneven that the threads do not fall into step
    for _ in range(90):
        time.sleep(pauses.uniform(0.003, 0.011) * SCALE)
        station.call()


def main():
    station = Station()
    threads = [threading.Thread(target=patrol, args=(station, number)) for number in range(4)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "calls": station.calls}))


if __name__ == "__main__":
    main()
