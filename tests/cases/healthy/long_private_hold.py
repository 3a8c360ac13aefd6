"""Each job holds a lock of its own all its life; a directory lock is taken for an instant."""

import os
import threading
import time

SCALE = float(os.environ.get("CASE_SCALE", "1"))
directory, jobs = threading.RLock(), {}


class Job:
    def __init__(self, name):
        self.running = threading.Lock()
        self.name = name

    def run(self):
        with self.running:
            with directory:
                jobs[self.name] = self
            time.sleep(0.7 * SCALE)
            with directory:
                del jobs[self.name]


def main():
    threads = [threading.Thread(target=Job(n).run) for n in range(6)]
    for thread in threads:
        thread.start()
    for _ in range(100):
        with directory:
            len(jobs)
        time.sleep(0.005 * SCALE)
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
