"""One thread unpacks a file for five that load it: they wait, and it never stops working."""

import base64
import json
import os
import queue
import sys
import threading
import time
import zlib

FIX = "--fix" in sys.argv  # blocks go on as they are; few have to be looked into
SCALE = float(os.environ.get("CASE_SCALE", "1"))
LOADERS = 5


def unpack(block):
    text = zlib.decompress(block)
    return zlib.compress(text[: len(text) // 2], 6)  # CULPRIT


def extract(blocks, lines):
    for number, block in enumerate(blocks):
        lines.put(block if FIX and number % 20 else unpack(block))
        if FIX:
            time.sleep(0.002 * SCALE)
    for _ in range(LOADERS):
        lines.put(None)


def load(lines, sizes):
    while (item := lines.get()) is not None:  # VICTIM
        time.sleep((0.03 if FIX else 0.002) * SCALE)
        sizes.append(len(item))


def main():
    block = zlib.compress(base64.b64encode(os.urandom(int(220_000 * SCALE))), 1)
    lines, sizes = queue.Queue(), []  # LOCK
    threads = [threading.Thread(target=load, args=(lines, sizes)) for _ in range(LOADERS)]
    threads.append(threading.Thread(target=extract, args=([block] * 90, lines)))
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"fix": FIX, "wall": round(time.perf_counter() - begun, 3), "n": len(sizes)}))


if __name__ == "__main__":
    main()
