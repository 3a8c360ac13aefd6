"""Viewers ask now and then whether a frame is being drawn, and sleep long after it has been."""

import json
import os
import sys
import threading
import time

FIX = "--fix" in sys.argv  # a number can be read at any time
SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Canvas:
    def __init__(self):
        self.drawing = threading.Lock()  # LOCK
        self.frames = 0

    def draw(self):
        with self.drawing:
            time.sleep(0.002 * SCALE)
            self.frames += 1

    def look(self):
        if not FIX:
            while self.drawing.locked():  # VICTIM CULPRIT
                time.sleep(0.025 * SCALE)
        return self.frames


def painter(canvas, stop):
    while not stop.is_set():
        canvas.draw()
        time.sleep(0.006 * SCALE)


def viewer(canvas, seen):
    for _ in range(30):
        seen.append(canvas.look())
        time.sleep(0.0031 * SCALE)


def main():
    canvas, stop, seen = Canvas(), threading.Event(), []
    painting = threading.Thread(target=painter, args=(canvas, stop))
    viewers = [threading.Thread(target=viewer, args=(canvas, seen)) for _ in range(5)]
    begun = time.perf_counter()
    for thread in (painting, *viewers):
        thread.start()
    for thread in viewers:
        thread.join()
    stop.set()
    painting.join()
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "frames": canvas.frames}))


if __name__ == "__main__":
    main()
