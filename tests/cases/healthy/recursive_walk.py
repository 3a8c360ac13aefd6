"""A tree with an RLock, walked by one thread and looked at by another once in a while."""

import os
import threading
import time

SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Tree:
    def __init__(self):
        self.lock = threading.RLock()
        self.sum = 0

    def walk(self, depth):
        with self.lock:
            self.sum += 1
            if depth:
                self.walk(depth - 1)
                self.walk(depth - 1)


def walker(tree):
    for _ in range(70):
        tree.walk(6)
        time.sleep(0.01 * SCALE)


def main():
    tree = Tree()
    thread = threading.Thread(target=walker, args=(tree,))
    thread.start()
    while thread.is_alive():
        with tree.lock:
            tree.sum += 1
        time.sleep(0.07 * SCALE)
    thread.join()


if __name__ == "__main__":
    main()
