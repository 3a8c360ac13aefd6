"""A housekeeper that skips its round when somebody else is at it."""

import os
import threading
import time

SCALE = float(os.environ.get("CASE_SCALE", "1"))


class House:
    def __init__(self):
        self.cleaning = threading.Lock()
        self.rounds = self.skipped = 0

    def clean(self):
        if not self.cleaning.acquire(blocking=False):
            self.skipped += 1
            return
        try:
            time.sleep(0.01 * SCALE)
            self.rounds += 1
        finally:
            self.cleaning.release()


def visit(house):
    for _ in range(20):
        time.sleep(0.03 * SCALE)
        house.clean()


def main():
    house = House()
    threads = [threading.Thread(target=visit, args=(house,)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(house.rounds, house.skipped)


if __name__ == "__main__":
    main()
