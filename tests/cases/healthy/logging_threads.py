"""Threads log now and then to a file, as services do."""

import logging
import os
import pathlib
import tempfile
import threading
import time

SCALE = float(os.environ.get("CASE_SCALE", "1"))


def serve(log, name):
    for number in range(60):
        time.sleep(0.012 * SCALE)
        log.info("%s handled request %d", name, number)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "service.log")
        log = logging.getLogger("service")
        log.setLevel(logging.INFO)
        log.propagate = False
        handler = logging.FileHandler(path)
        handler.setFormatter(logging.Formatter("%(asctime)s %(threadName)s %(message)s"))
        log.addHandler(handler)
        threads = [threading.Thread(target=serve, args=(log, f"worker {n}")) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        handler.close()
        print(len(path.read_text().splitlines()))


if __name__ == "__main__":
    main()
