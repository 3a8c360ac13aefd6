"""A thread pool that has served its start-up jobs and then waits for work that never comes."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

SCALE = float(os.environ.get("CASE_SCALE", "1"))


def main():
    with ThreadPoolExecutor(8) as pool:
        print(sum(pool.map(len, ["a" * n for n in range(50)])))
        time.sleep(0.8 * SCALE)


if __name__ == "__main__":
    main()
