"""Programs to be sampled, which know nothing of it: each runs until its standard input ends."""

from __future__ import annotations

import queue
import socket
import sys
import threading
import time

END = threading.Event()


class Store:
    def __init__(self) -> None:
        self._lock = threading.Lock()

    def write(self) -> None:
        with self._lock:
            to_disk()


def to_disk() -> None:
    time.sleep(0.05)


def lock_bound(store: Store) -> None:
    while not END.is_set():
        store.write()


def spin(lock: threading.Lock) -> None:
    while not lock.acquire(blocking=False):
        if END.is_set():
            return


def spinning(lock: threading.Lock) -> None:
    while not END.is_set():
        spin(lock)
        try:
            time.sleep(0.02)
        finally:
            if lock.locked():
                lock.release()


def gil_bound() -> None:
    while not END.is_set():
        sum(number * number for number in range(1000))


def idle(jobs: queue.Queue[int]) -> None:
    while jobs.get():
        pass


def serving(server: socket.socket) -> None:
    server.accept()


def main(kind: str) -> None:
    if kind == "lock-bound":
        work = lock_bound, (Store(),)
    elif kind == "spinning":
        work = spinning, (threading.Lock(),)
    elif kind == "gil-bound":
        work = gil_bound, ()
    elif kind == "idle":
        work = idle, (queue.Queue(),)
    else:
        server = socket.socket()
        server.bind(("127.0.0.1", 0))
        server.listen()
        work = serving, (server,)
    for number in range(4):
        threading.Thread(target=work[0], args=work[1], name=f"T{number}", daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()
    END.set()


if __name__ == "__main__":
    main(sys.argv[1])
