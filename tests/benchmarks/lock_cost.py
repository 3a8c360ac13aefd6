"""What the locks and their recording cost, against `threading.Lock` in the same run.

Run it by hand: `python tests/benchmarks/lock_cost.py [--rounds N]`. It prints a Markdown table,
asserts nothing, and takes two minutes. Every row is the median of interleaved rounds, with the
smallest and the largest; ratios are taken round by round, so that a machine that changes speed
changes both sides.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import tempfile
import threading
import time
import tracemalloc
from contextlib import nullcontext
from pathlib import Path
from queue import Queue, SimpleQueue
from typing import TYPE_CHECKING, Any

import contention_lab as cl
from contention_lab.capture.metadata import usable_cores
from contention_lab.locks import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PAIRS = 200_000
FRAMES = 30


def pair_ns(lock: Any) -> float:
    """Nanoseconds of one uncontended `with lock: pass`."""
    start = time.perf_counter_ns()
    for _ in range(PAIRS):
        with lock:
            pass
    return (time.perf_counter_ns() - start) / PAIRS


def pass_ns(send: Callable[[None], object], receive: Callable[[], object]) -> float:
    """Nanoseconds to send one item and receive it, by the same thread."""
    start = time.perf_counter_ns()
    for _ in range(PAIRS):
        send(None)
        receive()
    return (time.perf_counter_ns() - start) / PAIRS


def throughput(lock: Any, threads: int = 4, pairs: int = 60_000) -> float:
    """Acquisitions per second of `threads` threads that do nothing else."""
    gate = threading.Barrier(threads + 1)

    def work() -> None:
        gate.wait()
        for _ in range(pairs):
            with lock:
                pass

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    gate.wait()
    start = time.perf_counter()
    for worker in workers:
        worker.join()
    return threads * pairs / (time.perf_counter() - start)


def make_ns(factory: Callable[[], Any], count: int = 50_000) -> float:
    """Nanoseconds to make (and drop) one lock."""
    start = time.perf_counter_ns()
    for _ in range(count):
        factory()
    return (time.perf_counter_ns() - start) / count


def bytes_each(factory: Callable[[], Any], count: int = 10_000) -> float:
    """Bytes of memory a lock takes, as Python's allocator counts them."""
    keep: list[Any] = [None] * count
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for index in range(count):
        keep[index] = factory()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return (after - before) / count


def at_depth(depth: int, function: Callable[[], None]) -> None:
    """Call `function` with `depth` Python frames below it."""
    if depth <= 1:
        function()
    else:
        at_depth(depth - 1, function)


def contended_pair_ns(path: Path, waits: int = 4_000) -> tuple[float, int]:
    """Recorder time of one contended wait, victim's and culprit's stack together, 30 frames each.

    Two threads pass one lock to and fro, each `FRAMES` deep. The recorder stamps the clock around
    its own work on contended paths and adds it up (`self_ns`); this is that sum per contended wait.
    """
    lock = cl.Mutex("contended")

    def work() -> None:
        for _ in range(waits):
            with lock:
                time.sleep(0)  # gives the GIL up while holding, so that the other one must wait

    with cl.record(path, level="profile"):
        workers = [threading.Thread(target=at_depth, args=(FRAMES - 3, work)) for _ in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    trace = cl.load(path)
    contended = int(trace.counters["contended"].sum())
    assert trace.status is not None
    depth = max(len(trace.stack(int(stack))) for stack in trace.waits["stack"][:100])
    if depth < FRAMES or contended < waits // 4:
        raise SystemExit(f"not a measurement: {contended} waits, {depth} frames")
    return float(trace.status["self_ns"]) / contended, contended


def row(name: str, values: Iterable[float], goal: str, form: str = ".2f") -> str:
    """One line of the table."""
    ordered = sorted(values)
    middle = format(statistics.median(ordered), form)
    return f"| {name} | {middle} | {ordered[0]:{form}} to {ordered[-1]:{form}} | {goal} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    raw, ours = threading.Lock(), cl.Mutex()
    ratios: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.clt"
        print(
            f"CPython {platform.python_version()}, {usable_cores()} cores, {rounds} rounds",
            file=sys.stderr,
        )
        for _ in range(rounds):
            for level in (None, "counters", "profile", "trace"):
                base = pair_ns(raw)
                with cl.record(path, level=level) if level else nullcontext():
                    ours_ns = pair_ns(ours)
                ratios.setdefault(level or "off", []).append(ours_ns / base)
            for kind, factory in KINDS.items():
                base = pair_ns(raw)
                ratios.setdefault(f"{kind} off", []).append(pair_ns(lock := factory(kind)) / base)
                with cl.record(path, level="profile"):
                    ratios.setdefault(f"{kind} profile", []).append(pair_ns(lock) / base)
            simple, queue = SimpleQueue[None](), Queue[None]()
            channel, bounded = cl.Channel[None](), cl.Channel[None](maxsize=8)
            base = pass_ns(simple.put, simple.get)
            sent = pass_ns(channel.send, channel.receive)
            sent_bounded = pass_ns(bounded.send, bounded.receive)
            ratios.setdefault("channel", []).append(sent / base)
            ratios.setdefault("channel bounded", []).append(sent_bounded / base)
            ratios.setdefault("channel queue", []).append(sent / pass_ns(queue.put, queue.get))
            with cl.record(path, level="trace"):
                pair_ns(ours)
            ratios.setdefault("trace bytes", []).append(path.stat().st_size / PAIRS)
            base = throughput(threading.Lock())
            with cl.record(path, level="profile"):
                ours_rate = throughput(cl.Mutex())
            ratios.setdefault("throughput", []).append(ours_rate / base)
            ratios.setdefault("contended", []).append(contended_pair_ns(path)[0] / 1000)
            ratios.setdefault("make", []).append(make_ns(cl.Mutex))
            ratios.setdefault("make spin", []).append(make_ns(cl.SpinLock))
            ratios.setdefault("make named", []).append(make_ns(lambda: cl.Mutex(name="a")))
        memory = bytes_each(cl.Mutex)
    print("| measured | median | range | goal |")
    print("|---|---|---|---|")
    versus = "uncontended `with Mutex():` / `with threading.Lock():`"
    print(row(f"{versus}, no recording", ratios["off"], "-"))
    print(row(f"{versus}, level `counters`", ratios["counters"], "-"))
    print(row(f"{versus}, level `profile`", ratios["profile"], "≤ 0.80"))
    print(row(f"{versus}, level `trace`", ratios["trace"], "≤ 1.00"))
    for kind in KINDS:
        for level in ("off", "profile"):
            said = f"uncontended `{kind}` / raw, {level}"
            print(row(said, ratios[f"{kind} {level}"], "-"))
    print(row("`Channel` / `SimpleQueue`, an item passed, nobody waits", ratios["channel"], "-"))
    print(row("the same with maxsize=8", ratios["channel bounded"], "-"))
    print(row("`Channel` / `queue.Queue`", ratios["channel queue"], "-", ".3f"))
    print(row("4 threads on one lock, `profile`, throughput / raw", ratios["throughput"], "≥ 0.95"))
    print(
        row(
            f"recorder's time per contended wait, both stacks, {FRAMES} frames, µs",
            ratios["contended"],
            "≤ 1",
        )
    )
    print(row("making a `Mutex`, ns", ratios["make"], "≤ 200", ".0f"))
    print(row("making a `Mutex` with a name, ns", ratios["make named"], "≤ 200", ".0f"))
    print(row("making a `SpinLock`, ns", ratios["make spin"], "≤ 200", ".0f"))
    print(row("memory of a lock, bytes", [memory], "≤ 200", ".0f"))
    print(row("bytes on disk per uncontended hold, `trace`", ratios["trace bytes"], "≤ 24", ".1f"))


if __name__ == "__main__":
    main()
