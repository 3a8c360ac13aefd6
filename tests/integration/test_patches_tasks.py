"""What is recorded of asyncio: the task is the holder and the waiter."""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
import time
from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from recorded_facts import MS, Facts, ms, run_threads

import contention_lab as cl
from contention_lab.native import _core
from contention_lab.trace.schema import HoldFlag, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.clt"


async def together(**functions: Callable[[], Coroutine[Any, Any, Any]]) -> None:
    """Run coroutines as tasks that are called after them."""
    await asyncio.gather(
        *(asyncio.create_task(function(), name=name) for name, function in functions.items())
    )


def recorded(path: Path, main: Callable[[], Coroutine[Any, Any, Any]], **options: Any) -> Facts:
    with cl.record(path, **options):
        asyncio.run(main())
    return Facts(path)


def test_a_wait_names_the_task_that_holds_and_what_it_awaits(path: Path) -> None:
    async def main() -> None:
        lock = asyncio.Lock()

        async def culprit() -> None:
            async with lock:
                await inner()

        async def inner() -> None:
            await asyncio.sleep(0.04)

        async def victim() -> None:
            async with lock:
                pass

        await together(culprit=culprit, victim=victim)

    facts = recorded(path, main)
    (found,) = facts.waits("asyncio.Lock")
    assert ms(found) >= 35
    assert facts.name(found["thread"]) == "victim"
    assert facts.name(found["holder"]) == "culprit"
    assert facts.site(found["holder_site"]) == "culprit"
    assert "victim" in facts.functions(found["stack"])
    assert facts.functions(found["holder_stack"])[-3:] == ["sleep", "inner", "culprit"]
    (hold,) = facts.holds("asyncio.Lock")
    assert facts.name(hold["thread"]) == "culprit"
    assert ms(hold) >= 35
    assert facts.count("asyncio.Lock", "acquires") == 2
    (lock,) = [lock for lock in facts.trace.locks.values() if lock.type == "asyncio.Lock"]
    assert lock.site is not None
    assert lock.site.function.endswith("main")


def test_waits_of_tasks_are_no_time_of_their_thread(path: Path) -> None:
    async def main() -> None:
        lock = asyncio.Lock()

        async def turn() -> None:
            async with lock:
                await asyncio.sleep(0.03)

        await together(one=turn, two=turn, three=turn)

    facts = recorded(path, main)
    assert facts.count("asyncio.Lock", "wait_ns") >= 45 * MS
    assert facts.count("asyncio.Lock", "park_ns") == 0
    assert facts.count("asyncio.Lock", "spin_ns") == 0


def test_a_cancelled_wait_and_two_kinds_of_timeout(path: Path) -> None:
    async def main() -> None:
        lock = asyncio.Lock()

        async def victim() -> None:
            async with lock:
                pass

        async def waits_for() -> None:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(lock.acquire(), 0.01)

        async def with_timeout() -> None:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await lock.acquire()

        async with lock:
            cancelled = asyncio.create_task(victim(), name="cancelled")
            both = together(waits_for=waits_for, with_timeout=with_timeout)
            await asyncio.sleep(0.005)
            cancelled.cancel()
            await both
            with pytest.raises(asyncio.CancelledError):
                await cancelled

    facts = recorded(path, main)
    outcome = {facts.name(w["thread"]): Outcome(w["outcome"]) for w in facts.waits("asyncio.Lock")}
    assert outcome == {
        "cancelled": Outcome.CANCELLED,
        "waits_for": Outcome.TIMED_OUT,
        "with_timeout": Outcome.TIMED_OUT,
    }
    assert len({int(wait["holder"]) for wait in facts.waits("asyncio.Lock")}) == 1
    assert facts.count("asyncio.Lock", "timed_out") == 2
    assert facts.count("asyncio.Lock", "interrupted") == 1


def test_cancelling_whoever_called_wait_for_is_no_timeout(path: Path) -> None:
    async def main() -> None:
        lock = asyncio.Lock()
        async with lock:
            waiting = asyncio.create_task(asyncio.wait_for(lock.acquire(), 30), name="cancelled")
            await asyncio.sleep(0.01)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    (found,) = recorded(path, main).waits("asyncio.Lock")
    assert found["outcome"] == Outcome.CANCELLED


def test_a_lock_got_by_wait_for_is_held_by_its_caller(path: Path) -> None:
    async def main() -> None:
        lock = asyncio.Lock()

        async def caller() -> None:
            await asyncio.wait_for(lock.acquire(), 30)
            await asyncio.sleep(0.04)
            lock.release()

        async def victim() -> None:
            await asyncio.sleep(0.01)
            async with lock:
                pass

        await together(caller=caller, victim=victim)

    facts = recorded(path, main)
    (found,) = facts.waits("asyncio.Lock")
    (hold,) = facts.holds("asyncio.Lock")
    assert facts.name(found["holder"]) == "caller"
    assert facts.site(hold["site"]) == "caller"
    assert not hold["flags"] & HoldFlag.HANDED_OFF


def test_each_permit_of_a_semaphore_is_a_hold_of_its_task(path: Path) -> None:
    async def main() -> None:
        for semaphore in (asyncio.Semaphore(2), asyncio.BoundedSemaphore(2)):

            async def use(semaphore: asyncio.Semaphore = semaphore) -> None:
                async with semaphore:
                    await asyncio.sleep(0.04)

            await together(one=use, two=use, three=use)

    facts = recorded(path, main)
    for kind in ("asyncio.Semaphore", "asyncio.BoundedSemaphore"):
        (found,) = facts.waits(kind)
        assert facts.name(found["thread"]) == "three"
        assert facts.name(found["holder"]) == "one"
        assert {facts.name(hold["thread"]) for hold in facts.holds(kind)} == {"one", "two"}
        assert all(ms(hold) >= 35 for hold in facts.holds(kind))
        assert facts.count(kind, "acquires") == 3


def test_a_semaphore_at_zero_that_no_task_holds_is_a_signal(path: Path) -> None:
    async def main() -> None:
        semaphore = asyncio.Semaphore(0)

        async def setter() -> None:
            await asyncio.sleep(0.02)
            semaphore.release()

        await together(waiter=semaphore.acquire, setter=setter)

    facts = recorded(path, main)
    (found,) = facts.coordination("asyncio.Semaphore")
    assert facts.name(found["holder"]) == "setter"
    assert not facts.waits("asyncio.Semaphore")


def test_a_lock_released_by_another_task_is_handed_off(path: Path) -> None:
    async def main() -> None:
        lock = asyncio.Lock()

        async def releaser() -> None:
            lock.release()

        await together(taker=lock.acquire)
        await together(releaser=releaser)

    facts = recorded(path, main, level="trace")
    (hold,) = facts.holds("asyncio.Lock")
    assert hold["flags"] & HoldFlag.HANDED_OFF
    assert facts.name(hold["thread"]) == "taker"
    assert facts.name(hold["release_thread"]) == "releaser"


def test_condition_wait_is_split_where_the_task_wants_the_lock_again(path: Path) -> None:
    async def main() -> None:
        condition = asyncio.Condition()

        async def waiter() -> None:
            async with condition:
                await condition.wait()

        async def notifier() -> None:
            await asyncio.sleep(0.02)
            async with condition:
                condition.notify()
                await asyncio.sleep(0.04)

        await together(waiter=waiter, notifier=notifier)

    facts = recorded(path, main)
    kind = "asyncio.Lock in Condition"
    (signal,) = facts.coordination(kind)
    (again,) = facts.waits(kind)
    assert ms(signal) >= 15
    assert ms(again) >= 35
    assert int(again["start_ns"]) >= int(signal["end_ns"])
    assert facts.name(signal["thread"]) == facts.name(again["thread"]) == "waiter"
    assert facts.name(signal["holder"]) == facts.name(again["holder"]) == "notifier"
    assert facts.functions(signal["holder_stack"])[:2] == ["notify", "notifier"]


def test_a_condition_that_is_cancelled_or_not_owned_says_so(path: Path) -> None:
    async def main() -> None:
        condition = asyncio.Condition()
        with pytest.raises(RuntimeError, match="un-acquired"):
            await condition.wait()
        async with condition:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(condition.wait(), 0.01)

    (found,) = recorded(path, main).coordination("asyncio.Lock in Condition")
    assert found["outcome"] in (Outcome.TIMED_OUT, Outcome.CANCELLED)


def test_events_and_queues_name_who_woke_the_task(path: Path) -> None:
    async def main() -> None:
        event = asyncio.Event()
        line: asyncio.Queue[int] = asyncio.Queue(1)
        has_put: list[int] = []

        async def getter() -> None:
            await event.wait()
            await line.get()

        async def putter() -> None:
            await asyncio.sleep(0.01)
            event.set()
            await asyncio.sleep(0.01)
            await line.put(1)
            await line.put(2)
            has_put.append(2)
            await line.put(3)

        async def late_getter() -> None:
            while not has_put:
                await asyncio.sleep(0.005)
            line.get_nowait()

        await together(getter=getter, putter=putter, late_getter=late_getter)
        line.get_nowait()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(line.get(), 0.01)

    facts = recorded(path, main)
    (for_event,) = facts.coordination("asyncio.Event")
    assert facts.name(for_event["holder"]) == "putter"
    for_item, *for_room, late = facts.coordination("asyncio.Queue")
    assert facts.name(for_item["thread"]) == "getter"
    assert facts.name(for_item["holder"]) == "putter"
    assert facts.functions(for_item["stack"])[:2] == ["get", "getter"]
    assert {facts.name(wait["thread"]) for wait in for_room} == {"putter"}
    assert facts.name(for_room[-1]["holder"]) == "late_getter"
    assert late["outcome"] == Outcome.TIMED_OUT


def test_several_event_loops_are_told_apart(path: Path) -> None:
    def loop(name: str) -> Callable[[], None]:
        async def main() -> None:
            lock = asyncio.Lock()

            async def turn() -> None:
                async with lock:
                    await asyncio.sleep(0.01)

            await together(**{f"{name} {number}": turn for number in range(3)})

        return lambda: asyncio.run(main())

    with cl.record(path):
        run_threads(**{name: loop(name) for name in ("left", "right")})
    facts = Facts(path)
    waits = facts.waits("asyncio.Lock")
    assert len(waits) == 4
    for found in waits:
        assert facts.name(found["thread"])[:4] == facts.name(found["holder"])[:4]


def test_a_lock_taken_outside_of_a_task_belongs_to_the_thread(path: Path) -> None:
    with cl.record(path, level="trace"):
        loop = asyncio.new_event_loop()
        lock = asyncio.Lock()
        loop.run_until_complete(lock.acquire())
        loop.call_soon(lock.release)
        loop.call_soon(loop.stop)
        loop.run_forever()
        loop.close()
    facts = Facts(path)
    (hold,) = facts.holds("asyncio.Lock")
    assert facts.name(hold["release_thread"]) == threading.current_thread().name


def test_locks_that_outlive_a_recording_work_on(tmp_path: Path) -> None:
    async def main() -> None:
        lock = asyncio.Lock()
        for number in range(3):
            path = tmp_path / f"{number}.clt"
            with cl.record(path, level="trace"):
                if number:
                    lock.release()
                async with lock:
                    await asyncio.sleep(0.01)
                await lock.acquire()
            (hold,) = Facts(path).holds("asyncio.Lock")
            assert ms(hold) >= 5
        lock.release()

    asyncio.run(main())


def test_a_coroutine_of_a_patched_method_is_what_it_was(tmp_path: Path) -> None:
    before = inspect.signature(asyncio.Lock.acquire)
    with cl.record(tmp_path / "run.clt"):
        assert inspect.iscoroutinefunction(asyncio.Lock.acquire)
        assert asyncio.iscoroutinefunction(asyncio.Queue.get)
        assert inspect.signature(asyncio.Lock.acquire) == before
        assert asyncio.Lock.acquire.__qualname__ == "Lock.acquire"
        coroutine = asyncio.Lock().acquire()
        assert coroutine.__qualname__ == "Lock.acquire"
        coroutine.close()


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_of_what_describes_a_long_callback_only_an_interrupt_is_the_programs(
    path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def describe(*_: object) -> None:
        raise error

    reported: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)
    handle = SimpleNamespace(_loop=SimpleNamespace(_ready=()))
    with cl.record(path):
        _core.step_begins(handle)
        time.sleep(0.01)
        is_theirs = error is KeyboardInterrupt
        with pytest.raises(error) if is_theirs else nullcontext():
            _core.step_ended(describe, handle)
    assert [one.exc_type for one in reported] == ([] if is_theirs else [error])
