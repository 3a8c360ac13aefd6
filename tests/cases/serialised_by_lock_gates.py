"""An archive lets one thread in at a time, in order, by a gate of its own for each that waits."""

import hashlib
import json
import os
import sys
import threading
import time
from collections import deque

FIX = "--fix" in sys.argv  # the digest is computed before the archive is entered
SCALE = float(os.environ.get("CASE_SCALE", "1"))
PART = bytes(max(1, int(4_000_000 * SCALE)))


class InOrder:
    def __init__(self):
        self.guard = threading.Lock()
        self.taken = False
        self.queue = deque()

    def __enter__(self):
        with self.guard:
            if not self.taken:
                self.taken = True
                return
            gate = threading.Lock()  # LOCK
            gate.acquire()
            self.queue.append(gate)
        gate.acquire()  # VICTIM

    def __exit__(self, *error):
        with self.guard:
            if not self.queue:
                self.taken = False
                return
            gate = self.queue.popleft()
        gate.release()


def store(turn, archive, count):
    for _ in range(count):
        if FIX:
            digest = hashlib.sha256(PART).hexdigest()
            with turn:
                archive.append(digest)
            continue
        with turn:
            archive.append(hashlib.sha256(PART).hexdigest())  # CULPRIT


def main():
    turn, archive = InOrder(), []
    threads = [threading.Thread(target=store, args=(turn, archive, 40)) for _ in range(4)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "parts": len(archive)}))


if __name__ == "__main__":
    main()
