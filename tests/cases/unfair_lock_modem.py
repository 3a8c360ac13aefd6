"""A monitor gives a modem's semaphore back and takes it again before any woken waiter can."""

import json
import os
import sys
import threading
import time

FIX = "--fix" in sys.argv  # a lock, which does not make its waiters look again
SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Modem:
    def __init__(self):
        self.line = threading.Lock() if FIX else threading.Semaphore(1)  # LOCK

    def exchange(self):
        with self.line:  # VICTIM
            time.sleep(0.0012 * SCALE)  # CULPRIT


def monitor(modem, stop, end, counts):
    while not stop.is_set() and time.monotonic() < end:
        modem.exchange()
        counts.append("monitor")


def send(modem, counts):
    for _ in range(15):
        modem.exchange()
        counts.append("message")
        time.sleep(0.004 * SCALE)


def main():
    modem, stop, counts = Modem(), threading.Event(), []
    end = time.monotonic() + 1.0 * SCALE
    watching = threading.Thread(target=monitor, args=(modem, stop, end, counts))
    senders = [threading.Thread(target=send, args=(modem, counts)) for _ in range(4)]
    begun = time.perf_counter()
    for thread in (watching, *senders):
        thread.start()
    for thread in senders:
        thread.join()
    stop.set()
    watching.join()
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "looks": counts.count("monitor")}))


if __name__ == "__main__":
    main()
