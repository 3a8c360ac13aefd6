"""Which locks are taken while which others are held, as a recording sees it."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any

import contention_lab as cl
from contention_lab.trace import HoldFlag, OrderFlag, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from contention_lab.trace import Trace


def recorded(tmp_path: Path, program: Callable[[], None], level: str = "profile") -> Trace:
    path = tmp_path / "run.clt"
    with cl.record(path, level=level):
        program()
    trace = cl.load(path)
    assert not trace.problems
    return trace


def edges(trace: Trace) -> set[tuple[str, str]]:
    """Held and taken, by the names of locks that the test gave one."""
    named = {lock.id: lock.name for lock in trace.locks.values() if "." not in lock.type}
    pairs = trace.orders[["held", "lock"]].tolist()
    return {(named[a], named[b]) for a, b in pairs if a in named and b in named}


def in_thread(target: Callable[..., Any], *args: Any) -> None:
    thread = threading.Thread(target=target, args=args)
    thread.start()
    thread.join()


def test_a_lock_taken_under_another_is_written_once(tmp_path: Path) -> None:
    a, b = cl.Mutex("a"), cl.SpinLock("b")

    def program() -> None:
        for _ in range(100):
            with a, b:
                pass

    trace = recorded(tmp_path, program)
    assert edges(trace) == {("a", "b")}
    assert len(trace.orders) == 1
    (order,) = trace.orders
    assert trace.stack(int(order["stack"]))[0].function.endswith("program")
    assert trace.frames[int(order["held_site"])].function.endswith("program")


def test_all_that_is_held_goes_down_together(tmp_path: Path) -> None:
    a, b, c = cl.Mutex("a"), cl.Mutex("b"), cl.Mutex("c")

    def program() -> None:
        with a, b, c:
            pass

    trace = recorded(tmp_path, program)
    assert edges(trace) == {("a", "b"), ("a", "c"), ("b", "c")}
    assert trace.orders["group"].tolist() == [1, 2, 2]


def test_what_is_released_in_between_is_not_held(tmp_path: Path) -> None:
    a, b, c = cl.Mutex("a"), cl.Mutex("b"), cl.Mutex("c")

    def program() -> None:
        a.acquire()
        b.acquire()
        a.release()
        with c:
            pass
        b.release()
        with c:
            pass

    assert edges(recorded(tmp_path, program)) == {("a", "b"), ("b", "c")}


def test_an_attempt_that_does_not_wait_makes_no_order(tmp_path: Path) -> None:
    a, b, c = cl.Mutex("a"), cl.Mutex("b"), cl.Mutex("c")

    def program() -> None:
        with a:
            assert b.acquire(blocking=False)
            assert c.acquire(timeout=5)
        c.release()
        b.release()

    trace = recorded(tmp_path, program)
    assert edges(trace) == {("a", "c"), ("b", "c")}
    assert set(trace.orders["flags"].tolist()) == {OrderFlag.TIMEOUT_GIVEN}


def test_a_lock_that_others_release_is_held_by_nobody(tmp_path: Path) -> None:
    signal, b, c = cl.Mutex("signal"), cl.Mutex("b"), cl.Mutex("c")

    def program() -> None:
        signal.acquire()
        in_thread(signal.release)
        with b:
            pass
        signal.acquire()
        with c:
            pass
        signal.release()

    trace = recorded(tmp_path, program)
    assert edges(trace) == set()
    flagged = trace.orders[trace.orders["flags"] & int(OrderFlag.SIGNAL) != 0]
    assert [trace.lock(lock).name for lock in flagged["lock"].tolist()] == ["signal"]


def test_recursion_and_waiting_for_a_condition_are_not_orders(tmp_path: Path) -> None:
    outer = cl.Mutex("outer")

    def program() -> None:
        lock = threading.RLock()
        condition = threading.Condition(lock)
        with lock, lock, outer:
            pass
        with condition:
            condition.wait(timeout=0.01)
            with outer:
                pass

    trace = recorded(tmp_path, program)
    found = {
        (trace.lock(held).type, trace.lock(taken).type)
        for held, taken in trace.orders[["held", "lock"]].tolist()
    }
    assert found == {("threading.RLock", "Mutex")}


def test_the_order_is_written_before_the_thread_waits(tmp_path: Path) -> None:
    def program() -> None:
        a, b = threading.Lock(), threading.Lock()

        def take(first: Any, second: Any) -> None:
            with first:
                time.sleep(0.02)
                second.acquire()

        for pair in ((a, b), (b, a)):
            threading.Thread(target=take, args=pair, daemon=True).start()
        time.sleep(0.1)

    trace = recorded(tmp_path, program)
    open_waits = trace.waits[trace.waits["outcome"] == Outcome.OPEN]
    open_holds = trace.holds[trace.holds["flags"] & int(HoldFlag.OPEN) != 0]
    assert len(open_waits) == len(open_holds) == 2
    assert {*open_waits["holder"].tolist()} == {*open_holds["thread"].tolist()}
    pairs = trace.orders[["held", "lock"]].tolist()
    assert len({frozenset(pair) for pair in pairs if set(pair) <= {*open_waits["lock"]}}) == 1


def test_counters_alone_know_no_order(tmp_path: Path) -> None:
    a, b = cl.Mutex("a"), cl.Mutex("b")

    def program() -> None:
        with a, b:
            pass

    assert len(recorded(tmp_path, program, "counters").orders) == 0


def test_a_task_holds_its_locks_across_what_other_tasks_do(tmp_path: Path) -> None:
    async def take(first: asyncio.Lock, second: asyncio.Lock) -> None:
        async with first:
            await asyncio.sleep(0)
            async with second:
                await asyncio.sleep(0)

    async def main() -> None:
        a, b, c, d = (asyncio.Lock() for _ in range(4))
        for _ in range(5):
            await asyncio.gather(take(a, b), take(c, d))
        await take(b, a)

    trace = recorded(tmp_path, lambda: asyncio.run(main()))
    taken = [
        (thread, held, lock)
        for thread, held, lock in trace.orders[["thread", "held", "lock"]].tolist()
        if trace.lock(lock).type == "asyncio.Lock"
    ]
    pairs = {(held, lock) for _, held, lock in taken}
    assert len(pairs) == 3
    assert len({(held, lock) for held, lock in pairs if (lock, held) in pairs}) == 2
    assert all(trace.thread(thread).is_task for thread, _, _ in taken)
