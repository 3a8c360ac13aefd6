"""Recordings that begin and end while threads and tasks are in the middle of everything."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from recorded_facts import Facts, ms

import contention_lab as cl
from contention_lab.trace.schema import Outcome

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


class Line(queue.SimpleQueue[int]):
    """A subclass from before any recording."""


def test_simple_queues_of_any_age_are_recorded_and_their_type_is_what_it_was(
    tmp_path: Path,
) -> None:
    kind, before, inherited = queue.SimpleQueue, queue.SimpleQueue[int](), Line()
    methods = kind.put, kind.get, kind.__new__
    path = tmp_path / "run.clt"
    with cl.record(path):
        assert queue.SimpleQueue is kind
        made = queue.SimpleQueue[int]()
        for line in (before, inherited, made):
            assert isinstance(line, kind)
            thread = threading.Timer(0.02, line.put, [1])
            thread.start()
            assert line.get() == 1
            thread.join()
        with pytest.raises(queue.Empty):
            made.get(timeout=0.01)
        with pytest.raises(ValueError, match="non-negative"):
            made.get(timeout=-1)
        made.put(item=2)
        assert made.get(block=True, timeout=1) == 2
    assert (kind.put, kind.get, kind.__new__) == methods
    facts = Facts(path)
    woken = facts.coordination("queue.SimpleQueue")
    assert [Outcome(wait["outcome"]) for wait in woken] == [
        *[Outcome.ACQUIRED] * 3,
        Outcome.TIMED_OUT,
    ]
    assert all(wait["holder"] and ms(wait) >= 5 for wait in woken[:3])
    assert len({int(wait["lock"]) for wait in woken}) == 3
