"""Two stages of a build share one executor; `link` waits for `compile` jobs queued behind it."""

import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

FIX = "--fix" in sys.argv  # enough workers for both stages
SCALE = float(os.environ.get("CASE_SCALE", "1"))
LIBRARIES = 4


class Build:
    def __init__(self, workers):
        self.executor = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="build")
        self.log, self.given_up = [], 0

    def compile(self, unit):
        time.sleep(0.01 * SCALE)
        return f"{unit}.o"

    def link(self, library):
        unit = self.executor.submit(self.compile, library)
        try:
            self.log.append(unit.result(timeout=0.8 * SCALE))  # VICTIM CULPRIT
        except TimeoutError:
            self.given_up += 1


def main():
    build = Build(2 * LIBRARIES if FIX else LIBRARIES)
    list(build.executor.map(time.sleep, [0.01] * 2 * LIBRARIES))  # all workers have started
    begun = time.perf_counter()
    gate = threading.Event()
    jobs = [build.executor.submit(lambda n=n: gate.wait() and build.link(n)) for n in "abcd"]
    gate.set()
    for job in jobs:
        job.result()
    wall = time.perf_counter() - begun
    build.executor.shutdown()
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "given_up": build.given_up}))


if __name__ == "__main__":
    main()
