"""Workers go round a few slots and try each without blocking, all the time, until one is free."""

import hashlib
import itertools
import json
import os
import sys
import threading
import time

FIX = "--fix" in sys.argv  # a slot for each worker, which it waits for
SCALE = float(os.environ.get("CASE_SCALE", "1"))
WORKERS, JOBS = 6, 20


class Slot:
    def __init__(self):
        self.busy = threading.Lock()  # LOCK
        self.done = 0


def free_slot(slots):
    for slot in itertools.cycle(slots):
        if slot.busy.acquire(blocking=False):  # VICTIM CULPRIT
            return slot
    raise AssertionError


def work(number):
    return hashlib.pbkdf2_hmac("sha256", b"secret", b"%d" % number, int(9000 * SCALE))


def worker(slots, mine, results):
    for number in range(JOBS):
        if FIX:
            slot = slots[mine]
            slot.busy.acquire()
        else:
            slot = free_slot(slots)
        results.append(work(number))
        slot.done += 1
        slot.busy.release()


def main():
    slots = [Slot() for _ in range(WORKERS if FIX else 2)]
    results = []
    threads = [threading.Thread(target=worker, args=(slots, k, results)) for k in range(WORKERS)]
    begun, burnt = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall, cpu = time.perf_counter() - begun, time.process_time() - burnt
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "cpu": round(cpu, 3)}))


if __name__ == "__main__":
    main()
