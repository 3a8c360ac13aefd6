"""Connections lie in a queue; workers take one out and put it back. Two are too few."""

import contextlib
import json
import os
import queue
import sys
import threading
import time

FIX = "--fix" in sys.argv  # a connection for each worker
SCALE = float(os.environ.get("CASE_SCALE", "1"))
WORKERS = 9


class Connections:
    def __init__(self, size):
        self.idle = queue.Queue()  # LOCK
        for number in range(size):
            self.idle.put(number)

    @contextlib.contextmanager
    def lease(self):
        connection = self.idle.get()  # VICTIM
        try:
            yield connection
        finally:
            self.idle.put(connection)


def worker(connections, rows):
    for _ in range(20):
        with connections.lease():
            time.sleep(0.010 * SCALE)  # CULPRIT
        rows.append(sum(range(300)))


def main():
    connections, rows = Connections(WORKERS if FIX else 2), []
    threads = [threading.Thread(target=worker, args=(connections, rows)) for _ in range(WORKERS)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"fix": FIX, "wall": round(time.perf_counter() - begun, 3), "n": len(rows)}))


if __name__ == "__main__":
    main()
