"""Three stages of equal speed with roomy queues between them: nobody waits for long in vain."""

import json
import os
import queue
import threading
import time

SCALE = float(os.environ.get("CASE_SCALE", "1"))
ITEMS = 120


def stage(source, target):
    while (item := source.get()) is not None:
        time.sleep(0.004 * SCALE)
        target.put(item + 1)
    target.put(None)


def main():
    first, second, third, out = (queue.Queue(maxsize=50) for _ in range(4))
    pairs = ((first, second), (second, third), (third, out))
    threads = [threading.Thread(target=stage, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for number in range(ITEMS):
        time.sleep(0.0043 * SCALE)
        first.put(number)
    first.put(None)
    total = 0
    while (item := out.get()) is not None:
        total += item
    for thread in threads:
        thread.join()
    print(json.dumps({"total": total}))


if __name__ == "__main__":
    main()
