"""An archive compresses every document while it holds its index lock, so the cores take turns."""

import base64
import json
import os
import sys
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

FIX = "--fix" in sys.argv  # compress first, then put it into the index
SCALE = float(os.environ.get("CASE_SCALE", "1"))
DOCUMENTS = 72


class Archive:
    def __init__(self, level):
        self.level = level
        self.index_guard = threading.RLock()  # LOCK
        self.index = {}

    def add(self, name, text):
        if FIX:
            packed = zlib.compress(text, self.level)
            with self.index_guard:
                self.index[name] = packed
            return
        with self.index_guard:  # VICTIM
            self.index[name] = zlib.compress(text, self.level)  # CULPRIT


def main():
    text = base64.b64encode(os.urandom(int(170_000 * SCALE)))
    archive = Archive(level=6)
    begun = time.perf_counter()
    with ThreadPoolExecutor(4) as pool:
        for number in range(DOCUMENTS):
            pool.submit(archive.add, f"document {number}", text)
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "documents": len(archive.index)}))


if __name__ == "__main__":
    main()
