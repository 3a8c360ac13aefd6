"""The first reader locks the room and the last one unlocks it; with many it is never empty."""

import json
import os
import sys
import threading
import time

FIX = "--fix" in sys.argv  # a turnstile, where the writer holds the readers up
SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Room:
    def __init__(self):
        self.empty = threading.Lock()  # LOCK
        self.switch = threading.Lock()
        self.turnstile = threading.Lock()
        self.inside = 0

    def enter(self):
        if FIX:
            with self.turnstile:
                pass
        with self.switch:
            self.inside += 1
            if self.inside == 1:
                self.empty.acquire()

    def leave(self):
        with self.switch:
            self.inside -= 1
            if self.inside == 0:
                self.empty.release()

    def clean(self, patience_s):
        if not FIX:
            if not self.empty.acquire(timeout=patience_s):  # VICTIM
                return False
            time.sleep(0.002 * SCALE)
            self.empty.release()
            return True
        with self.turnstile, self.empty:
            time.sleep(0.002 * SCALE)
        return True


def guest(room, stop, visits):
    while not stop.is_set():
        room.enter()
        time.sleep(0.008 * SCALE)  # CULPRIT
        room.leave()
        visits.append(1)


def main():
    room, stop, visits = Room(), threading.Event(), []
    guests = [threading.Thread(target=guest, args=(room, stop, visits)) for _ in range(5)]
    for thread in guests:
        thread.start()
        time.sleep(0.0017 * SCALE)
    cleaned, end = 0, time.monotonic() + 1.1 * SCALE
    while (left := end - time.monotonic()) > 0:
        cleaned += room.clean(left)
        time.sleep(0.025 * SCALE)
    stop.set()
    for thread in guests:
        thread.join()
    print(json.dumps({"fix": FIX, "visits": len(visits), "cleaned": cleaned}))


if __name__ == "__main__":
    main()
