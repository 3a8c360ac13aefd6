"""Threads that run programs and wait for them."""

import os
import subprocess
import threading

SCALE = float(os.environ.get("CASE_SCALE", "1"))


def run(count, codes):
    for _ in range(count):
        done = subprocess.run(["sleep", str(0.04 * SCALE)], capture_output=True, check=False)
        codes.append(done.returncode)


def main():
    codes = []
    threads = [threading.Thread(target=run, args=(8, codes)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(codes)


if __name__ == "__main__":
    main()
