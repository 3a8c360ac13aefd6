"""Workers wait for an event that says `there is work`; it wakes everyone for one piece of it."""

import json
import os
import queue
import sys
import threading
import time

FIX = "--fix" in sys.argv  # a queue wakes one
SCALE = float(os.environ.get("CASE_SCALE", "1"))
WORKERS = 32


class Board:
    def __init__(self):
        self.guard = threading.Lock()
        self.work = threading.Event()  # LOCK
        self.pieces, self.ended, self.useless = [], False, 0

    def post(self, piece):
        with self.guard:
            self.pieces.append(piece)
            self.work.set()  # CULPRIT

    def end(self):
        with self.guard:
            self.ended = True
            self.work.set()

    def take(self):
        while True:
            self.work.wait()  # VICTIM
            with self.guard:
                if self.pieces:
                    return self.pieces.pop()
                if self.ended:
                    return None
                self.useless += 1
                self.work.clear()


def main():
    board, line, done = Board(), queue.SimpleQueue(), queue.SimpleQueue()

    def worker():
        while (piece := line.get() if FIX else board.take()) is not None:
            done.put(piece)

    threads = [threading.Thread(target=worker) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    begun = time.perf_counter()
    for number in range(2 * int(1600 * SCALE)):
        if FIX:
            line.put(number)
        else:
            board.post(number)
        if number % 2:  # two pieces under way at a time
            done.get()
            done.get()
    board.end()
    for _ in threads:
        line.put(None)
    for thread in threads:
        thread.join()
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "useless": board.useless}))


if __name__ == "__main__":
    main()
