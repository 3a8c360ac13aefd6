"""A context manager spins on a failed try until it has the lock; the holder cannot get on."""

import json
import os
import sys
import threading
import time

FIX = "--fix" in sys.argv  # block instead
SCALE = float(os.environ.get("CASE_SCALE", "1"))
STEPS = 20


class SpinGuard:
    def __init__(self):
        self._flag = threading.Lock()  # LOCK
        self.tries = 0

    def __enter__(self):
        if FIX:
            self._flag.acquire()
            return self
        while not self._flag.acquire(False):  # VICTIM CULPRIT
            self.tries += 1
        return self

    def __exit__(self, *exc):
        self._flag.release()


def append(journal, pipe, line):
    os.write(pipe, line)  # leaves the GIL, and has to get it back
    time.sleep(0.0003 * SCALE)
    journal.append(line)


def writer(guard, journal, pipe):
    for number in range(STEPS):
        with guard:
            append(journal, pipe, b"%d\n" % number)
        sum(range(int(2000 * SCALE)))


def main():
    guard, journal = SpinGuard(), []
    source, sink = os.pipe()
    threads = [threading.Thread(target=writer, args=(guard, journal, sink)) for _ in range(5)]
    begun, burnt = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall, cpu = time.perf_counter() - begun, time.process_time() - burnt
    os.close(source)
    os.close(sink)
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "cpu": round(cpu, 3), "n": guard.tries}))


if __name__ == "__main__":
    main()
