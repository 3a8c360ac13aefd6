"""Three permits for a picture store that could serve a dozen requests at a time."""

import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

FIX = "--fix" in sys.argv  # as many permits as requests under way
SCALE = float(os.environ.get("CASE_SCALE", "1"))
REQUESTS = 12


class Store:
    def __init__(self, permits):
        self.permits = threading.BoundedSemaphore(permits)  # LOCK
        self.count_lock = threading.Lock()
        self.served = 0

    def fetch(self, number):
        with self.permits:  # VICTIM
            time.sleep((0.009 + number % 3 * 0.001) * SCALE)  # CULPRIT
        with self.count_lock:
            self.served += 1
        return number


def main():
    store = Store(REQUESTS if FIX else 3)
    begun = time.perf_counter()
    with ThreadPoolExecutor(REQUESTS) as pool:
        list(pool.map(store.fetch, range(240)))
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "served": store.served}))


if __name__ == "__main__":
    main()
