"""The first reader takes a semaphore's only permit, the last gives it back: a writer starves."""

import os
import sys
import threading
import time

FIX = "--fix" in sys.argv  # a turnstile, where the writer holds the readers up
SCALE = float(os.environ.get("CASE_SCALE", "1"))

count = threading.Lock()
empty = threading.Semaphore(1)  # LOCK
turnstile = threading.Lock()
inside = [0]


def come():
    if FIX:
        with turnstile:
            pass
    with count:
        inside[0] += 1
        if inside[0] == 1:
            empty.acquire()


def go():
    with count:
        inside[0] -= 1
        if inside[0] == 0:
            empty.release()


def read(stop, number):
    time.sleep(number * 0.003 * SCALE)
    while not stop.is_set():
        come()
        time.sleep(0.01 * SCALE)  # CULPRIT
        go()


def write():
    for _ in range(5):
        if FIX:
            turnstile.acquire()
        empty.acquire()  # VICTIM
        time.sleep(0.001 * SCALE)
        empty.release()
        if FIX:
            turnstile.release()
        time.sleep(0.1 * SCALE)


def main():
    stop = threading.Event()
    readers = [threading.Thread(target=read, args=(stop, number)) for number in range(6)]
    writer = threading.Thread(target=write)
    for thread in readers:
        thread.start()
    time.sleep(0.02 * SCALE)
    writer.start()
    time.sleep(1.2 * SCALE)
    stop.set()
    for thread in (writer, *readers):
        thread.join()


if __name__ == "__main__":
    main()
