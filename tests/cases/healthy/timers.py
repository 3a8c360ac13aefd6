"""Timers, some of which are cancelled."""

import os
import threading
import time

SCALE = float(os.environ.get("CASE_SCALE", "1"))


def main():
    rung = []
    timers = [threading.Timer(0.03 * n * SCALE, rung.append, (n,)) for n in range(1, 21)]
    for timer in timers:
        timer.start()
    time.sleep(0.25 * SCALE)
    for timer in timers[::3]:
        timer.cancel()
    for timer in timers:
        timer.join()
    print(rung)


if __name__ == "__main__":
    main()
