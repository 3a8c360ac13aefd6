"""Threads read and write a shared dictionary under a lock, for microseconds, between other work."""

import hashlib
import os
import threading

SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Table:
    def __init__(self):
        self._lock = threading.Lock()
        self._values = {}

    def add(self, key, value):
        with self._lock:
            self._values[key] = value

    def get(self, key):
        with self._lock:
            return self._values.get(key)


def work(table, name):
    for number in range(150):
        value = hashlib.pbkdf2_hmac("sha256", name, b"%d" % number, int(5000 * SCALE))
        table.add((name, number), value)
        table.get((name, number // 2))


def main():
    table = Table()
    threads = [threading.Thread(target=work, args=(table, name)) for name in (b"x", b"y")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
