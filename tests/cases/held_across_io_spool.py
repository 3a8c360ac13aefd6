"""Pages are set in Python and sent down a pipe to a slow printer while the spool is locked."""

import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

FIX = "--fix" in sys.argv  # pages come typeset, and nobody waits until they are printed
SCALE = float(os.environ.get("CASE_SCALE", "1"))
PAGES = 80


class Spool:
    def __init__(self, write_end, done):
        self.write_end, self.done = write_end, done
        self.in_use = threading.RLock()  # LOCK
        self.number = 0

    def page(self, text):
        if FIX:
            with self.in_use:
                self.number += 1
            os.write(self.write_end, text)
            return
        with self.in_use:  # VICTIM
            self.number += 1
            os.write(self.write_end, typeset(text, self.number))
            os.read(self.done, 1)  # CULPRIT


def typeset(text, number):
    until = time.thread_time() + 0.002 * SCALE
    while time.thread_time() < until:
        text = b"".join(bytes([(byte + number) % 256]) for byte in text)
    return text


def printed(read_end, write_end):
    while os.read(read_end, 1 << 16):
        if not FIX:
            time.sleep(0.006 * SCALE)
            os.write(write_end, b"k")


def main():
    read_end, write_end = os.pipe()
    done, ready = os.pipe()
    spool = Spool(write_end, done)
    machine = threading.Thread(target=printed, args=(read_end, ready))
    begun = time.perf_counter()
    machine.start()
    with ThreadPoolExecutor(5) as pool:
        for number in range(PAGES):
            pool.submit(spool.page, b"page %d " % number * 8)
    os.close(write_end)
    machine.join()
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "pages": spool.number}))


if __name__ == "__main__":
    main()
