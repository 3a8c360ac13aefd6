"""Recordings that begin and end while threads and tasks are in the middle of everything."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import contention_lab as cl

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_recordings_come_and_go_under_a_running_program(tmp_path: Path) -> None:
    stop = threading.Event()
    failures: list[BaseException] = []
    lock, again, semaphore = threading.Lock(), threading.RLock(), threading.Semaphore(2)
    condition, barrier = threading.Condition(), threading.Barrier(2)
    line: queue.Queue[int] = queue.Queue(2)
    simple: queue.SimpleQueue[int] = queue.SimpleQueue()

    def repeatedly(step: Callable[[], Any]) -> Callable[[], None]:
        def loop() -> None:
            try:
                while not stop.is_set():
                    step()
            except BaseException as error:
                failures.append(error)
                stop.set()

        return loop

    def locks() -> None:
        with lock, again, semaphore, again:
            time.sleep(0.0002)

    def wait_or_notify() -> None:
        with condition:
            condition.notify_all()
            condition.wait(0.002)

    def meet() -> None:
        barrier.wait(30)

    def produce() -> None:
        line.put(1, timeout=30)
        simple.put(1)

    def consume() -> None:
        line.get(timeout=30)
        simple.get(timeout=30)

    def pool() -> None:
        with ThreadPoolExecutor(2) as workers:
            assert [job.result() for job in [workers.submit(int) for _ in range(4)]] == [0] * 4

    async def asynchronous() -> None:
        shared, permits = asyncio.Lock(), asyncio.Semaphore(2)

        async def turn() -> None:
            async with shared, permits:
                await asyncio.sleep(0.0005)

        await asyncio.gather(*(turn() for _ in range(5)))

    steps: list[Callable[[], Any]] = [locks, locks, locks, wait_or_notify, wait_or_notify, pool]
    steps += [lambda: asyncio.run(asynchronous())]
    threads = [threading.Thread(target=repeatedly(step)) for step in steps]
    counted = [
        threading.Thread(target=lambda step=step: [step() for _ in range(150)])  # type: ignore[misc]
        for step in (meet, meet, produce, consume)
    ]
    for thread in (*threads, *counted):
        thread.start()
    for number in range(15):
        path = tmp_path / f"{number}.clt"
        with cl.record(path, level=("counters", "profile", "trace")[number % 3]):
            time.sleep(0.03)
        trace = cl.load(path)
        assert trace.complete
        assert not trace.problems
    stop.set()
    for thread in (*threads, *counted):
        thread.join(60)
        assert not thread.is_alive()
    assert not failures
