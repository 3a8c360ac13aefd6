"""A producer and consumers that are a little faster than it."""

import os
import queue
import threading
import time

SCALE = float(os.environ.get("CASE_SCALE", "1"))


def consume(items, total):
    while (item := items.get()) is not None:
        time.sleep(0.0075 * SCALE)
        total.append(item)
        items.task_done()


def main():
    items, total = queue.Queue(20), []
    threads = [threading.Thread(target=consume, args=(items, total)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(180):
        time.sleep(0.004 * SCALE)
        items.put(number)
    items.join()
    for _ in threads:
        items.put(None)
    for thread in threads:
        thread.join()
    print(len(total))


if __name__ == "__main__":
    main()
