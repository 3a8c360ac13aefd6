"""A pool lends its only connection to whoever asked last; those who asked first wait to the end."""

import json
import os
import sys
import threading
import time

FIX = "--fix" in sys.argv  # whoever asked first comes first, and holds it no longer than it is used
SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Pool:
    def __init__(self):
        self.guard = threading.Lock()
        self.lent = False
        self.asking = []

    def borrow(self):
        with self.guard:
            if not self.lent:
                self.lent = True
                return
            turn = threading.Lock()  # LOCK
            turn.acquire()
            self.asking.append(turn)
        turn.acquire()  # VICTIM

    def give_back(self):
        with self.guard:
            if not self.asking:
                self.lent = False
                return
            turn = self.asking.pop(0 if FIX else -1)
        turn.release()


def poll(pool, end, counts, rest):
    while time.monotonic() < end:
        pool.borrow()
        try:
            time.sleep(0.003 * SCALE)  # CULPRIT
        finally:
            pool.give_back()
        counts.append(threading.current_thread().name)
        time.sleep(rest * SCALE)


def main():
    pool, counts = Pool(), []
    end = time.monotonic() + 1.2 * SCALE
    rests = [0.0, 0.0, 0.002, 0.002, 0.002]
    if FIX:
        rests = [0.1] * 5
    threads = [threading.Thread(target=poll, args=(pool, end, counts, rest)) for rest in rests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"fix": FIX, "turns": sorted(map(counts.count, set(counts)))}))


if __name__ == "__main__":
    main()
