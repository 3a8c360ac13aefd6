"""Request threads count under the registry's lock; a rare scrape packs everything under it."""

import base64
import json
import os
import sys
import threading
import time
import zlib

FIX = "--fix" in sys.argv  # copy under the lock, pack outside it
SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Registry:
    def __init__(self, history):
        self._guard = threading.Lock()  # LOCK
        self._counts = {}
        self._history = history

    def count(self, name):
        self._guard.acquire()  # VICTIM
        try:
            self._counts[name] = self._counts.get(name, 0) + 1
        finally:
            self._guard.release()

    def scrape(self):
        if FIX:
            with self._guard:
                history = self._history
            return zlib.compress(history, 9)
        with self._guard:
            return zlib.compress(self._history, 9)  # CULPRIT


def serve(registry, name, stop, served):
    while not stop.is_set():
        time.sleep(0.0012)
        registry.count(name)
        served.append(name)


def scraper(registry, stop):
    while not stop.wait(0.03 * SCALE):
        registry.scrape()


def main():
    history = base64.b64encode(os.urandom(int(900_000 * SCALE)))
    registry, stop, served = Registry(history), threading.Event(), []
    threads = [
        threading.Thread(target=serve, args=(registry, f"path {k}", stop, served)) for k in range(5)
    ]
    threads.append(threading.Thread(target=scraper, args=(registry, stop)))
    for thread in threads:
        thread.start()
    time.sleep(1.1 * SCALE)
    stop.set()
    for thread in threads:
        thread.join()
    print(json.dumps({"fix": FIX, "served": len(served)}))


if __name__ == "__main__":
    main()
