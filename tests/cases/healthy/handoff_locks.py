"""A fair gate of private locks: each waiter blocks on a lock of its own until it is its turn."""

import collections
import os
import threading
import time

SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Gate:
    def __init__(self):
        self.mutex = threading.Lock()
        self.taken, self.waiters = False, collections.deque()

    def __enter__(self):
        with self.mutex:
            if not self.taken:
                self.taken = True
                return
            turn = threading.Lock()
            turn.acquire()
            self.waiters.append(turn)
        turn.acquire()  # released by the one before

    def __exit__(self, *exc):
        with self.mutex:
            if self.waiters:
                self.waiters.popleft().release()
            else:
                self.taken = False


def visit(gate, seed):
    for number in range(60):
        time.sleep((0.008 + (number * 7 + seed) % 5 * 0.001) * SCALE)
        with gate:
            time.sleep(0.0003 * SCALE)


def main():
    gate = Gate()
    threads = [threading.Thread(target=visit, args=(gate, seed)) for seed in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
