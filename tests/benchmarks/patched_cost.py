"""What Python's own synchronisation costs while it is recorded, against itself when it is not.

Every figure is a ratio within one round: the same loop without a recording, and with one right
after it. Rounds are interleaved; the table shows medians and ranges. Run: `python
tests/benchmarks/patched_cost.py`.

If `ddtrace` is installed, its lock profiler is measured in a process of its own, at its default of
1 % of all acquires and with the same loop; else a line says so. Ours counts every acquire and every
contention.
"""

from __future__ import annotations

import argparse
import asyncio
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import contention_lab as cl

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 9
PAIRS = 20_000
DDTRACE = """
import sys, threading, time
from ddtrace.profiling.collector import threading as profiled
from ddtrace.internal.datadog.profiling import ddup
ddup.config(env="bench", service="bench", version="0", output_filename=sys.argv[1])
ddup.start()
def pair_ns(lock, pairs=20_000):
    best = float("inf")
    for _ in range(2):
        before = time.thread_time_ns()
        for _ in range(pairs):
            with lock:
                pass
        best = min(best, (time.thread_time_ns() - before) / pairs)
    return best
raw = threading.Lock()
ratios = []
for _ in range(int(sys.argv[2])):
    base = pair_ns(raw)
    collector = profiled.ThreadingLockCollector()
    assert collector.capture_pct == 1.0, "not the default"
    collector.start()
    ratios.append(pair_ns(threading.Lock()) / base)
    collector.stop()
print(*ratios)
"""


def repeated(
    operation: Callable[[int], None],
    times: int,
    clock: Callable[[], int] = time.thread_time_ns,
) -> float:
    """Nanoseconds for each of `times` repetitions, the better of two attempts.

    CPU time, so that other programs on the machine do not count, where one thread does it all.
    """
    best = float("inf")
    for _ in range(2):
        before = clock()
        operation(times)
        best = min(best, (clock() - before) / times)
    return best


def with_block(make: Callable[[], Any]) -> float:
    """`with lock: pass`."""
    lock = make()

    def loop(times: int) -> None:
        for _ in range(times):
            with lock:
                pass

    return repeated(loop, PAIRS)


def notify_nobody() -> float:
    """`with condition: condition.notify()`, nobody waiting."""
    condition = threading.Condition()

    def loop(times: int) -> None:
        for _ in range(times):
            with condition:
                condition.notify()

    return repeated(loop, PAIRS)


def notify_and_wait() -> float:
    """Two threads pass a turn to and fro: a notify and a wait each."""
    condition = threading.Condition()
    turn = 0

    def play(me: int, times: int) -> None:
        nonlocal turn
        with condition:
            for _ in range(times):
                while turn != me:
                    condition.wait()
                turn = 1 - me
                condition.notify()

    def loop(times: int) -> None:
        other = threading.Thread(target=play, args=(1, times))
        other.start()
        play(0, times)
        other.join()

    return repeated(loop, 1_000, time.perf_counter_ns)


def put_and_get(make: Callable[[], Any]) -> float:
    """`queue.put(1)`, `queue.get()` in one thread."""
    line = make()

    def loop(times: int) -> None:
        for _ in range(times):
            line.put(1)
            line.get()

    return repeated(loop, PAIRS // 2)


def submit_and_result() -> float:
    """A pool of two threads, a task that does nothing, its result."""

    def loop(times: int) -> None:
        with ThreadPoolExecutor(2) as pool:
            for _ in range(times):
                pool.submit(int).result()

    return repeated(loop, 500, time.perf_counter_ns)


def async_with(make: Callable[[], Any]) -> float:
    """`async with lock: pass` in one task."""

    def loop(times: int) -> None:
        async def work() -> None:
            lock = make()
            for _ in range(times):
                async with lock:
                    pass

        asyncio.run(work())

    return repeated(loop, PAIRS // 4)


CASES: dict[str, tuple[Callable[[], float], dict[str, str]]] = {
    "threading.Lock, `with`": (
        lambda: with_block(threading.Lock),
        {"profile": "≤ 1.10 (3.11), ≤ 1.5 (3.13)", "trace": "≤ 1.30 (3.11), ≤ 2.0 (3.13)"},
    ),
    "threading.RLock, `with`": (lambda: with_block(threading.RLock), {"profile": "≤ 1.5"}),
    "Condition, notify nobody": (notify_nobody, {"profile": "≤ 1.5"}),
    "Condition, notify and wait": (notify_and_wait, {"profile": "≤ 1.5"}),
    "queue.Queue, put and get": (lambda: put_and_get(queue.Queue), {"profile": "≤ 1.5"}),
    "queue.SimpleQueue, put and get": (
        lambda: put_and_get(queue.SimpleQueue),
        {"profile": "≤ 1.5"},
    ),
    "threading.Semaphore, `with`": (
        lambda: with_block(threading.Semaphore),
        {"profile": "≤ 1.5"},
    ),
    "ThreadPoolExecutor, submit and result": (submit_and_result, {}),
    "asyncio.Lock, `async with`": (lambda: async_with(asyncio.Lock), {"profile": "≤ 2"}),
    "asyncio.Semaphore, `async with`": (
        lambda: async_with(asyncio.Semaphore),
        {"profile": "≤ 2"},
    ),
}


def measure(rounds: int, chosen: str) -> dict[tuple[str, str], list[float]]:
    """Ratios by case and level."""
    ratios: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.clt"
        for _ in range(rounds):
            for name, (case, _goals) in CASES.items():
                if chosen not in name:
                    continue
                for level in ("profile", "trace"):
                    raw = case()
                    with cl.record(path, level=level):
                        recorded = case()
                    ratios.setdefault((name, level), []).append(recorded / raw)
    return ratios


def ddtrace_ratios(rounds: int) -> list[float]:
    """What ddtrace's lock profiler makes of `with lock:`; nothing if it is not here."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", DDTRACE, str(Path(folder) / "profile"), str(rounds)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    if done.returncode:
        print(f"ddtrace: not measured ({(done.stderr.strip().splitlines() or ['?'])[-1]})")
        return []
    return [float(word) for word in done.stdout.split()]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    arguments = parser.parse_args()
    print(f"Python {sys.version.split()[0]}; recorded / not recorded, {arguments.rounds} rounds")
    print("| what | level | median | range | goal |")
    print("|---|---|---|---|---|")
    ratios = measure(arguments.rounds, arguments.only)
    for (name, level), values in ratios.items():
        print(row(name, level, values, CASES[name][1].get(level, "-")))
    ours = ratios.get(("threading.Lock, `with`", "profile"))
    theirs = ddtrace_ratios(arguments.rounds) if ours else []
    if ours and theirs:
        print(row("threading.Lock, `with`", "ddtrace, 1 %", theirs, "-"))
        cheaper = statistics.median(theirs) / statistics.median(ours)
        print(f"\n`profile` is {cheaper:.1f} times cheaper than ddtrace at 1 % (goal: at least 4)")


def row(name: str, level: str, values: list[float], goal: str) -> str:
    """Return a row of the table: median and range."""
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"| {name} | {level} | {middle:.2f} | {low:.2f} to {high:.2f} | {goal} |"


if __name__ == "__main__":
    main()
