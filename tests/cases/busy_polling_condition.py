"""Watchers wait for a condition a blink at a time: nobody ever notifies them."""

import json
import os
import sys
import threading
import time

FIX = "--fix" in sys.argv  # notify, and wait without a timeout
SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Progress:
    def __init__(self):
        self.changed = threading.Condition()  # LOCK
        self.percent = 0

    def advance(self, percent):
        with self.changed:
            self.percent = percent
            if FIX and percent % 25 == 0:  # what the watchers wait for
                self.changed.notify_all()

    def reached(self, percent):
        looks = 0
        with self.changed:
            while self.percent < percent:
                self.changed.wait(None if FIX else 0.00005)  # VICTIM CULPRIT
                looks += 1
        return looks


def watcher(progress, looks):
    for percent in (25, 50, 75, 100):
        looks.append(progress.reached(percent))


def main():
    progress, looks = Progress(), []
    watchers = [threading.Thread(target=watcher, args=(progress, looks)) for _ in range(16)]
    for thread in watchers:
        thread.start()
    begun, burnt = time.perf_counter(), time.process_time()
    for percent in range(1, 101):
        sum(range(int(100_000 * SCALE)))
        progress.advance(percent)
        time.sleep(0.004 * SCALE)
    for thread in watchers:
        thread.join()
    wall, cpu = time.perf_counter() - begun, time.process_time() - burnt
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "cpu": round(cpu, 3), "n": sum(looks)}))


if __name__ == "__main__":
    main()
