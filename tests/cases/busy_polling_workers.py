"""Three workers look into an empty queue without waiting, and swallow what it says."""

import os
import queue
import sys
import threading
import time

FIX = "--fix" in sys.argv  # wait for an item
SCALE = float(os.environ.get("CASE_SCALE", "1"))
WORKERS = 3


def work(inbox):
    while True:
        try:
            item = inbox.get() if FIX else inbox.get_nowait()  # VICTIM CULPRIT
        except queue.Empty:
            continue
        if item is None:
            return
        time.sleep(0.002 * SCALE)


def main():
    inbox = queue.Queue()  # LOCK
    workers = [threading.Thread(target=work, args=(inbox,)) for _ in range(WORKERS)]
    for thread in workers:
        thread.start()
    for number in range(40):
        inbox.put(number)
        time.sleep(0.02 * SCALE)
    for _ in workers:
        inbox.put(None)
    for thread in workers:
        thread.join()


if __name__ == "__main__":
    main()
