"""What a recording keeps of waits for others: who comes and goes meanwhile, and who was woken."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

import contention_lab as cl
from contention_lab.analysis.coordination import Purpose, coordination
from contention_lab.analysis.pools import pools
from contention_lab.trace import HoldFlag, WaitFlag

if TYPE_CHECKING:
    from pathlib import Path

    from contention_lab.trace import Trace


def recorded(path: Path, work: object) -> Trace:
    with cl.record(path / "run.clt"):
        work()  # type: ignore[operator]
    return cl.load(path / "run.clt")


def test_holds_under_a_condition_that_is_waited_on_are_recorded_with_their_lines(
    tmp_path: Path,
) -> None:
    def come_and_go() -> None:
        condition = threading.Condition()
        waiting = threading.Thread(target=wait_for_all, args=(condition,))
        waiting.start()
        while not condition._waiters:  # type: ignore[attr-defined]
            time.sleep(0.001)
        for _ in range(10):
            with condition:
                pass
            with condition:
                pass
        with condition:
            condition.notify()
        waiting.join()

    def wait_for_all(condition: threading.Condition) -> None:
        with condition:
            condition.wait()

    trace = recorded(tmp_path, come_and_go)
    watched = trace.holds[trace.holds["flags"] & int(HoldFlag.WATCHED) != 0]
    lines = {trace.frames[int(site)].line for site in watched["site"] if int(site)}
    assert len(watched) >= 20
    assert len(lines) >= 2
    assert np.count_nonzero(watched["stack"]) >= 20


def test_an_idle_queue_does_not_record_what_is_done_with_it(tmp_path: Path) -> None:
    def put_and_get() -> None:
        items: queue.Queue[int | None] = queue.Queue()
        idle = threading.Thread(target=items.get)
        idle.start()
        time.sleep(0.01)
        for _ in range(20):
            items.empty()
        items.put(None)
        idle.join()

    trace = recorded(tmp_path, put_and_get)
    assert not np.any(trace.holds["flags"] & int(HoldFlag.WATCHED))


def test_a_wake_up_in_vain_is_followed_by_waiting_again(tmp_path: Path) -> None:
    def wake_all_for_one() -> None:
        condition, items = threading.Condition(), []

        def take() -> None:
            with condition:
                while not items:
                    condition.wait()
                items.pop()

        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(4):
            while len(condition._waiters) < sum(t.is_alive() for t in threads):  # type: ignore[attr-defined]
                time.sleep(0.001)
            with condition:
                items.append(None)
                condition.notify_all()
            time.sleep(0.02)
        for thread in threads:
            thread.join()

    trace = recorded(tmp_path, wake_all_for_one)
    case = next(one for one in coordination(trace) if one.purpose is Purpose.CONDITION)
    again = case.flags & int(WaitFlag.AGAIN) != 0
    # Of 4, 3, 2 and 1 that are woken, all but one wait again each time.
    assert np.count_nonzero(again) == 6
    assert np.bincount(case.batch).max() == 4


def test_tasks_of_a_pool_are_holds_of_its_workers(tmp_path: Path) -> None:
    def work() -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(time.sleep, [0.01] * 6))

    (pool,) = pools(recorded(tmp_path, work))
    assert len(pool.start_ns) == 6
    assert set(pool.worker.tolist()) <= {*pool.workers}
    assert pool.results
    assert (pool.end_ns - pool.start_ns).min() >= 9_000_000


def test_steps_that_keep_an_event_loop_are_recorded_with_who_was_ready(tmp_path: Path) -> None:
    async def beat() -> None:
        for _ in range(10):
            await asyncio.sleep(0.002)

    async def block() -> None:
        await asyncio.sleep(0.003)
        time.sleep(0.05)

    async def both() -> None:
        await asyncio.gather(beat(), block())

    trace = recorded(tmp_path, lambda: asyncio.run(both()))
    steps = trace.steps[trace.steps["end_ns"] - trace.steps["start_ns"] >= 40_000_000]
    assert len(steps) == 1
    step = steps[0]
    assert trace.thread(int(step["task"])).name.endswith("block")
    assert step["ready"] >= 1
    assert trace.thread(int(step["victim"])).name.endswith("beat")
    assert trace.stack(int(step["stack"]))[-1].function.endswith("block")


def test_tasks_that_wait_for_room_are_told_from_those_that_wait_for_an_item(
    tmp_path: Path,
) -> None:
    async def fill(items: asyncio.Queue[int]) -> None:
        for number in range(6):
            await items.put(number)

    async def drain(items: asyncio.Queue[int]) -> None:
        for _ in range(6):
            await asyncio.sleep(0.003)
            await items.get()
        waiting = asyncio.ensure_future(items.get())
        await asyncio.sleep(0.003)
        await items.put(7)
        await waiting

    async def both() -> None:
        items: asyncio.Queue[int] = asyncio.Queue(1)
        await asyncio.gather(fill(items), drain(items))

    cases = {
        one.purpose: one for one in coordination(recorded(tmp_path, lambda: asyncio.run(both())))
    }
    assert len(cases[Purpose.ROOM].index) >= 4
    assert len(cases[Purpose.ITEM].index) >= 1
    assert cases[Purpose.ROOM].woken_share == 1.0
