"""Each reader of an archive takes one ticket, who compacts it all of them; readers never end."""

import json
import os
import sys
import threading
import time

FIX = "--fix" in sys.argv  # readers stand back while somebody collects
SCALE = float(os.environ.get("CASE_SCALE", "1"))
TICKETS = 6


class Archive:
    def __init__(self):
        self.tickets = threading.BoundedSemaphore(TICKETS)  # LOCK
        self.gate = threading.Lock()

    def read(self):
        if FIX:
            with self.gate:
                self.tickets.acquire()
        else:
            self.tickets.acquire()
        time.sleep(0.007 * SCALE)  # CULPRIT
        self.tickets.release()

    def compact(self, patience_s):
        if FIX:
            with self.gate:
                return self.collect(patience_s)
        return self.collect(patience_s)

    def collect(self, patience_s):
        late, mine = time.monotonic() + patience_s, 0
        while mine < TICKETS and (left := late - time.monotonic()) > 0:
            mine += self.tickets.acquire(timeout=left)  # VICTIM
        if mine == TICKETS:
            time.sleep(0.002 * SCALE)
        for _ in range(mine):
            self.tickets.release()
        return mine == TICKETS


def reader(archive, stop, offset):
    time.sleep(offset)
    while not stop.is_set():
        archive.read()


def main():
    archive, stop, done = Archive(), threading.Event(), 0
    readers = [
        threading.Thread(target=reader, args=(archive, stop, i * 0.0016 * SCALE)) for i in range(4)
    ]
    begun = time.perf_counter()
    for thread in readers:
        thread.start()
    time.sleep(0.05 * SCALE)
    for _ in range(3):
        done += archive.compact(0.35 * SCALE)
        time.sleep(0.02 * SCALE)
    stop.set()
    for thread in readers:
        thread.join()
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "compacted": done}))


if __name__ == "__main__":
    main()
