"""Tellers try for the till and nap; it is nearly always taken, by whoever waits for change."""

import json
import os
import sys
import threading
import time

FIX = "--fix" in sys.argv  # the change is fetched before
SCALE = float(os.environ.get("CASE_SCALE", "1"))
TELLERS, CUSTOMERS = 7, 40


class Till:
    def __init__(self):
        self.key = threading.Lock()  # LOCK
        self.paid = 0

    def take(self):
        while not self.key.acquire(blocking=False):  # VICTIM
            time.sleep(0.004 * SCALE)

    def pay(self):
        if FIX:
            fetch_change()
        self.take()
        if not FIX:
            fetch_change()
        self.paid += 1
        self.key.release()


def fetch_change():
    time.sleep(0.003 * SCALE)  # CULPRIT


def serve(till):
    for _ in range(CUSTOMERS):
        till.pay()


def main():
    till = Till()
    tellers = [threading.Thread(target=serve, args=(till,)) for _ in range(TELLERS)]
    begun = time.perf_counter()
    for teller in tellers:
        teller.start()
    for teller in tellers:
        teller.join()
    print(json.dumps({"fix": FIX, "wall": round(time.perf_counter() - begun, 3), "n": till.paid}))


if __name__ == "__main__":
    main()
