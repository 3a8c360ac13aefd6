"""A full buffer flushes itself with its lock held, and the flush takes it again, till a timeout."""

import json
import os
import sys
import threading
import time

FIX = "--fix" in sys.argv  # the flush that is called with the lock held does not take it
SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Buffer:
    def __init__(self, room):
        self.room, self.lines, self.written, self.lost = room, [], 0, 0
        self.gate = threading.Lock()  # LOCK

    def write(self, line):
        with self.gate:
            self.lines.append(line)
            if len(self.lines) >= self.room:
                if FIX:
                    self._flush_held()
                else:
                    self.flush()

    def flush(self):
        if not self.gate.acquire(timeout=0.12 * SCALE):  # VICTIM
            self.lost += 1
            self.lines.clear()
            return
        try:
            self._flush_held()
        finally:
            self.gate.release()

    def _flush_held(self):
        self.written += len(self.lines)
        self.lines.clear()


def fill(buffer):
    for number in range(50):
        buffer.write(f"line {number}")  # CULPRIT
        time.sleep(0.001 * SCALE)


def main():
    buffer = Buffer(room=10)
    begun = time.perf_counter()
    fill(buffer)
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "lost": buffer.lost}))


if __name__ == "__main__":
    main()
