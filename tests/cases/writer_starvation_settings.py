"""A lock for readers and writers lets readers in at any time; two writers wait for a gap."""

import contextlib
import json
import os
import random
import sys
import threading
import time

FIX = "--fix" in sys.argv  # readers let a waiting writer go first
SCALE = float(os.environ.get("CASE_SCALE", "1"))


class SharedLock:
    def __init__(self):
        self.mutex = threading.Lock()  # LOCK 2
        self.free = threading.Condition(self.mutex)  # LOCK
        self.readers = self.waiting = 0
        self.writing = False

    @contextlib.contextmanager
    def reading(self):
        with self.mutex:
            while self.writing or (FIX and self.waiting):
                self.free.wait()
            self.readers += 1
        try:
            yield
        finally:
            with self.mutex:
                self.readers -= 1
                self.free.notify_all()

    def write(self, action, end):
        with self.mutex:
            self.waiting += 1
            while self.readers or self.writing:
                if not self.free.wait(max(0.0, end - time.monotonic())):  # VICTIM
                    self.waiting -= 1
                    return False
            self.waiting -= 1
            self.writing = True
        action()
        with self.mutex:
            self.writing = False
            self.free.notify_all()
        return True


def lookup(shared, settings, end, reads):
    chance = random.Random(len(reads))
    while time.monotonic() < end:
        with shared.reading():
            settings.get("colour")
            time.sleep(chance.uniform(0.006, 0.012) * SCALE)  # CULPRIT
        reads.append(1)


def change(shared, settings, end, writes):
    while time.monotonic() < end:
        time.sleep(0.03 * SCALE)
        if shared.write(lambda: settings.update(colour=time.monotonic()), end):
            writes.append(1)


def main():
    shared, settings, reads, writes = SharedLock(), {"colour": 0}, [], []
    end = time.monotonic() + 1.2 * SCALE
    threads = [
        threading.Thread(target=lookup, args=(shared, settings, end, reads)) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
        time.sleep(0.0013)
    writers = [
        threading.Thread(target=change, args=(shared, settings, end, writes)) for _ in range(2)
    ]
    for thread in writers:
        thread.start()
    for thread in threads + writers:
        thread.join()
    print(json.dumps({"fix": FIX, "reads": len(reads), "writes": len(writes)}))


if __name__ == "__main__":
    main()
