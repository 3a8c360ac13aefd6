"""A service is stopped under the lock that its worker needs, and joined there."""

import json
import os
import sys
import threading
import time

FIX = "--fix" in sys.argv  # the lock is given back before the join
SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Collector:
    def __init__(self):
        self.state = threading.RLock()  # LOCK
        self.active, self.rounds = True, 0
        self.worker = threading.Thread(target=self.collect)
        self.worker.start()

    def collect(self):
        while True:
            time.sleep(0.004 * SCALE)
            with self.state:  # VICTIM
                if not self.active:
                    return
                self.rounds += 1

    def stop(self, patience_s):
        with self.state:
            self.active = False
            if not FIX:
                self.worker.join(patience_s)  # CULPRIT
        self.worker.join()


def main():
    begun = time.perf_counter()
    rounds = 0
    for _ in range(3):
        collector = Collector()
        time.sleep(0.06 * SCALE)
        collector.stop(0.25 * SCALE)
        rounds += collector.rounds
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "rounds": rounds}))


if __name__ == "__main__":
    main()
