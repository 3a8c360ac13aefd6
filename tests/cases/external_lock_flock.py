"""A file lock of the operating system guards a ledger; threads wait in flock, not in Python."""

import contextlib
import fcntl
import json
import os
import pathlib
import sys
import tempfile
import threading
import time

FIX = "--fix" in sys.argv  # the upload is not under the lock
SCALE = float(os.environ.get("CASE_SCALE", "1"))


@contextlib.contextmanager
def locked(path):
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # VICTIM
        try:
            yield file
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


def upload(line):
    time.sleep(0.014 * SCALE)
    return line


def worker(path, name):
    for number in range(12):
        line = f"{name} {number}\n"
        if FIX:
            upload(line)
            with locked(path) as file:
                file.write(line)
            continue
        with locked(path) as file:
            file.write(upload(line))  # CULPRIT


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "ledger")
        threads = [threading.Thread(target=worker, args=(path, name)) for name in "abcde"]
        begun = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wall = time.perf_counter() - begun
        lines = len(path.read_text().splitlines())
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "lines": lines}))


if __name__ == "__main__":
    main()
