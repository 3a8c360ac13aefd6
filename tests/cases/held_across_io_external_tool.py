"""Locks by name in a dictionary; the one for thumbnails is held while a program runs."""

import json
import os
import subprocess
import sys
import threading
import time

FIX = "--fix" in sys.argv  # run the program first
SCALE = float(os.environ.get("CASE_SCALE", "1"))
LOCKS = {}
for topic in ("thumbnails", "orders", "mail"):
    LOCKS[topic] = threading.Lock()  # LOCK
done = []


def convert(picture):
    subprocess.run(["sleep", str(0.03 * SCALE)], check=True)  # CULPRIT
    return f"{picture}.png"


def thumbnail(picture):
    if FIX:
        result = convert(picture)
        with LOCKS["thumbnails"]:
            done.append(result)
        return
    with LOCKS["thumbnails"]:  # VICTIM
        done.append(convert(picture))


def order():
    for _ in range(30):
        with LOCKS["orders"]:
            done[-1:]
        time.sleep(0.01 * SCALE)


def main():
    threads = [
        threading.Thread(target=lambda k=k: [thumbnail(k * 10 + n) for n in range(5)])
        for k in range(4)
    ]
    threads.append(threading.Thread(target=order))
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "pictures": len(done)}))


if __name__ == "__main__":
    main()
