"""A scheduler thread runs entries of the standard library's `sched` at their times."""

import os
import sched
import threading
import time

SCALE = float(os.environ.get("CASE_SCALE", "1"))


def main():
    schedule, ran = sched.scheduler(time.monotonic, time.sleep), []
    for number in range(30):
        schedule.enter(0.025 * number * SCALE, 1, ran.append, (number,))
    thread = threading.Thread(target=schedule.run)
    thread.start()
    for number in range(10):
        schedule.enter(0.05 * number * SCALE, 2, ran.append, (-number,))
    thread.join()
    print(len(ran))


if __name__ == "__main__":
    main()
