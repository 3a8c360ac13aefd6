"""Threads in step: equal work between the meetings."""

import os
import threading
import time

SCALE = float(os.environ.get("CASE_SCALE", "1"))


def main():
    meeting = threading.Barrier(4)

    def step():
        for _ in range(40):
            time.sleep(0.02 * SCALE)
            meeting.wait()

    threads = [threading.Thread(target=step) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
