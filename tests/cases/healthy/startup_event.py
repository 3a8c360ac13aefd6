"""A service waits for its parts to be ready, then works; its parts wait to be told to stop."""

import os
import threading
import time

SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Part(threading.Thread):
    def __init__(self, stop):
        super().__init__()
        self.ready, self.stop = threading.Event(), stop

    def run(self):
        time.sleep(0.05 * SCALE)
        self.ready.set()
        self.stop.wait()


def main():
    stop = threading.Event()
    parts = [Part(stop) for _ in range(5)]
    for part in parts:
        part.start()
    for part in parts:
        part.ready.wait()
    time.sleep(0.7 * SCALE)
    stop.set()
    for part in parts:
        part.join()


if __name__ == "__main__":
    main()
