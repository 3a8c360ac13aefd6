"""A lift waits for the event `vacant`, which everybody who comes in clears again."""

import json
import os
import sys
import threading
import time

FIX = "--fix" in sys.argv  # nobody comes in while the lift waits
SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Hall:
    def __init__(self):
        self.count = threading.Lock()
        self.vacant = threading.Event()  # LOCK
        self.vacant.set()
        self.open = threading.Event()
        self.open.set()
        self.people = 0

    def come(self):
        if FIX:
            self.open.wait()
        with self.count:
            self.people += 1
            self.vacant.clear()

    def go(self):
        with self.count:
            self.people -= 1
            if not self.people:
                self.vacant.set()

    def lift(self, patience_s):
        if FIX:
            self.open.clear()
        moved = self.vacant.wait(patience_s)  # VICTIM
        if moved:
            time.sleep(0.002 * SCALE)
        if FIX:
            self.open.set()
        return moved


def visitor(hall, stop, offset):
    time.sleep(offset)
    while not stop.is_set():
        hall.come()
        time.sleep(0.009 * SCALE)  # CULPRIT
        hall.go()


def main():
    hall, stop, lifted = Hall(), threading.Event(), 0
    visitors = [
        threading.Thread(target=visitor, args=(hall, stop, i * 0.0021 * SCALE)) for i in range(5)
    ]
    begun = time.perf_counter()
    for thread in visitors:
        thread.start()
    time.sleep(0.05 * SCALE)
    for _ in range(3):
        lifted += hall.lift(0.35 * SCALE)
        time.sleep(0.03 * SCALE)
    stop.set()
    for thread in visitors:
        thread.join()
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "lifted": lifted}))


if __name__ == "__main__":
    main()
