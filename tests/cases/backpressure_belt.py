"""Loaders and packers share a belt of one condition, and wait for it in one function."""

import hashlib
import json
import os
import sys
import threading
import time

FIX = "--fix" in sys.argv  # packers that are fast enough
SCALE = float(os.environ.get("CASE_SCALE", "1"))
LOADERS, BOXES = 2, 72


class Belt:
    def __init__(self, room):
        self.room, self.boxes = room, []
        self.moved = threading.Condition()  # LOCK

    def wait_until(self, ready):
        while not ready():
            self.moved.wait()  # VICTIM

    def load(self, box):
        with self.moved:
            self.wait_until(lambda: len(self.boxes) < self.room)
            self.boxes.append(box)
            self.moved.notify_all()

    def unload(self):
        with self.moved:
            self.wait_until(lambda: self.boxes)
            box = self.boxes.pop(0)
            self.moved.notify_all()
            return box


def loader(belt, number):
    for count in range(BOXES):
        if FIX:
            time.sleep(0.01 * SCALE)
        belt.load(hashlib.sha256(b"%d %d" % (number, count)).digest())


def packer(belt, packed):
    while (box := belt.unload()) is not None:
        time.sleep((0.0002 if FIX else 0.006) * SCALE)  # CULPRIT
        packed.append(box)


def main():
    belt, packed = Belt(5), []
    loaders = [threading.Thread(target=loader, args=(belt, number)) for number in range(LOADERS)]
    one = threading.Thread(target=packer, args=(belt, packed))
    begun = time.perf_counter()
    for thread in (one, *loaders):
        thread.start()
    for thread in loaders:
        thread.join()
    belt.load(None)
    one.join()
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "packed": len(packed)}))


if __name__ == "__main__":
    main()
