"""A batch of work under one lock, as it was and as it was fixed: what predictions are held against.

Usage: python fixable.py CASE FIX THREADS

CASE says what is done under the lock, FIX how the lock was dealt with ("none": not at all). Every
case does a fixed amount of work, dealt out to the threads in turn; printed is the time from the
start of the first thread to the end of the last, in seconds.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import time
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

CASE, FIX, THREADS = sys.argv[1], sys.argv[2], int(sys.argv[3])
PARTS = 8
DATA = os.urandom(1 << 20)
TEXT = DATA[: 1 << 17] + bytes(1 << 18)
SPINS = CASE.startswith("spin") and FIX != "parking"


def one_lock() -> AbstractContextManager[object]:
    """Make the lock; only spinlocks need the package, which the interpreter may lack."""
    if not SPINS:
        return threading.Lock()
    from contention_lab import SpinLock

    return SpinLock()


lock = one_lock()
parts = [threading.Lock() for _ in range(PARTS)]
done: dict[int, object] = {}


def digest(times: int) -> None:
    """Work in native code, without the GIL."""
    for _ in range(times):
        hashlib.sha256(DATA).digest()


def count(steps: int) -> int:
    """Work in Python, with the GIL."""
    found = 0
    for i in range(steps):
        found += i * i
    return found


def run(number: int, outside: tuple[object, ...], inside: tuple[object, ...]) -> None:
    """Do what is done outside, then what is done inside, the way that the fix says."""
    for work in outside:
        work()
    if FIX == "narrow":
        for work in inside:
            work()
        with lock:
            done[number] = inside
    elif FIX == "move-out":
        for work in inside:
            if work in SLEEPS:
                work()
        with lock:
            for work in inside:
                if work not in SLEEPS:
                    work()
            done[number] = inside
    elif FIX == "shard":
        with parts[hash((number, "part")) % PARTS]:
            for work in inside:
                work()
            done[number] = inside
    elif FIX == "half":
        with lock:
            for work in inside[: len(inside) // 2]:
                work()
            done[number] = inside
    else:
        with lock:
            for work in inside:
                work()
            done[number] = inside


def hashes() -> None:
    digest(1)


def squeezes() -> None:
    zlib.compress(TEXT, 1)


def counts() -> None:
    count(20_000)


def counts_a_little() -> None:
    count(2_000)


def sleeps() -> None:
    time.sleep(0.002)


def sleeps_briefly() -> None:
    time.sleep(0.0005)


SLEEPS = (sleeps, sleeps_briefly)
CASES = {
    # what is done: (outside the lock, under it, how often)
    "native": ((hashes,), (hashes, hashes), 240),
    "zlib": ((hashes, counts_a_little), (squeezes, squeezes), 120),
    "python": ((counts,), (counts, counts), 240),
    "sleep": ((counts,), (sleeps,), 240),
    "mixed": ((hashes, sleeps_briefly), (counts_a_little, hashes, sleeps_briefly), 240),
    "short": ((counts_a_little,), (sleeps_briefly, counts_a_little), 600),
    "spin-native": ((hashes,), (hashes, hashes), 120),
    "spin-sleep": ((counts_a_little,), (sleeps_briefly, hashes), 200),
}


def main() -> None:
    """Do all of it and print how long it took."""
    outside, inside, pieces = CASES[CASE]

    def worker(first: int) -> None:
        for number in range(first, pieces, THREADS):
            run(number, outside, inside)

    threads = [threading.Thread(target=worker, args=(first,)) for first in range(THREADS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{time.perf_counter() - began:.6f}")


if __name__ == "__main__":
    main()
