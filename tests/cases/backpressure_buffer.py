"""A hand-made bounded buffer between many encoders and one slow disk."""

import hashlib
import json
import os
import sys
import threading
import time

FIX = "--fix" in sys.argv  # a disk that is fast enough
SCALE = float(os.environ.get("CASE_SCALE", "1"))
ENCODERS, FRAMES = 4, 40


class Buffer:
    def __init__(self, room):
        self.room, self.frames = room, []
        self.lock = threading.Lock()  # LOCK 2
        self.not_full = threading.Condition(self.lock)  # LOCK
        self.not_empty = threading.Condition(self.lock)

    def put(self, frame):
        with self.not_full:
            while len(self.frames) >= self.room:
                self.not_full.wait()  # VICTIM
            self.frames.append(frame)
            self.not_empty.notify()

    def get(self):
        with self.not_empty:
            while not self.frames:
                self.not_empty.wait()
            frame = self.frames.pop(0)
            self.not_full.notify()
            return frame


def encode(buffer, number):
    for count in range(FRAMES):
        if FIX:
            time.sleep(0.004 * SCALE)
        buffer.put(hashlib.sha256(b"%d %d" % (number, count)).digest())


def disk(buffer, written):
    while (frame := buffer.get()) is not None:
        time.sleep((0.0002 if FIX else 0.005) * SCALE)  # CULPRIT
        written.append(frame)


def main():
    buffer, written = Buffer(3), []
    encoders = [threading.Thread(target=encode, args=(buffer, k)) for k in range(ENCODERS)]
    writer = threading.Thread(target=disk, args=(buffer, written))
    begun = time.perf_counter()
    for thread in (writer, *encoders):
        thread.start()
    for thread in encoders:
        thread.join()
    buffer.put(None)
    writer.join()
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "written": len(written)}))


if __name__ == "__main__":
    main()
