"""Threads take messages from a queue and parse them: C code, but all of it under the GIL."""

import json
import os
import queue
import re
import sys
import threading
import time
import zlib

FIX = "--fix" in sys.argv  # packed messages, which are checked but not parsed
SCALE = float(os.environ.get("CASE_SCALE", "1"))
PAIR = re.compile(r"(\w+)=(\d+)")


def parse(message):
    fields = json.loads(message)
    return sum(int(value) for _, value in PAIR.findall(fields["text"]))  # VICTIM CULPRIT


def worker(messages, totals):
    while (message := messages.get()) is not None:
        totals.append(zlib.crc32(message.encode()) if FIX else parse(message))


def main():
    text = " ".join(f"key{n}={n}" for n in range(900))
    message = json.dumps({"text": text, "more": list(range(500))})
    messages, totals = queue.SimpleQueue(), []
    for _ in range(int(1400 * SCALE)):
        messages.put(message)
    threads = [threading.Thread(target=worker, args=(messages, totals)) for _ in range(5)]
    for _ in threads:
        messages.put(None)
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "messages": len(totals)}))


if __name__ == "__main__":
    main()
