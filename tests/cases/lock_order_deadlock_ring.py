"""Three services, each holding its own lock while it asks the next one: a ring, until a timeout."""

import json
import os
import sys
import threading
import time

FIX = "--fix" in sys.argv  # ask without holding
SCALE = float(os.environ.get("CASE_SCALE", "1"))
PATIENCE_S = 0.25 * SCALE


class Service:
    def __init__(self, name, lock):
        self.name, self.lock, self.next = name, lock, None
        self.failed = 0

    def ask(self):
        if not self.lock.acquire(timeout=PATIENCE_S):  # VICTIM
            return None
        try:
            return self.name
        finally:
            self.lock.release()

    def update(self, gate):
        if FIX:
            gate.wait()
            self.failed += self.next.ask() is None
            return
        with self.lock:
            gate.wait()
            self.failed += self.next.ask() is None  # CULPRIT


def run(service, gate):
    for _ in range(3):
        service.update(gate)


def main():
    names = ("catalogue", "index", "journal")
    services = [Service(name, threading.RLock()) for name in names]  # LOCK
    for service, following in zip(services, services[1:] + services[:1], strict=True):
        service.next = following
    gate = threading.Barrier(3)
    threads = [threading.Thread(target=run, args=(service, gate)) for service in services]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall = time.perf_counter() - begun
    failed = sum(service.failed for service in services)
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "failed": failed}))


if __name__ == "__main__":
    main()
