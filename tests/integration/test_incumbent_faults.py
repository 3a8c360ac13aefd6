"""The eight faults of the incumbent lock profiler, each as a program, and what we say of it."""

from __future__ import annotations

import asyncio
import queue
import subprocess
import sys
import textwrap
import threading
import time
from typing import TYPE_CHECKING

from recorded_facts import Facts, ms, run_threads

import contention_lab as cl
from contention_lab.trace.schema import Outcome

if TYPE_CHECKING:
    from pathlib import Path


def test_an_acquire_that_times_out_after_50_ms_is_a_wait_with_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "run.clt"
    with cl.record(path):
        lock = threading.Lock()
        held, done = threading.Event(), threading.Event()

        def culprit() -> None:
            with lock:
                held.set()
                done.wait()

        def victim() -> None:
            held.wait()
            assert not lock.acquire(timeout=0.05)
            done.set()

        run_threads(culprit=culprit, victim=victim)
    facts = Facts(path)
    (wait,) = facts.waits("threading.Lock")
    assert wait["outcome"] == Outcome.TIMED_OUT
    assert ms(wait) >= 50
    assert facts.name(wait["thread"]) == "victim"
    assert facts.name(wait["holder"]) == "culprit"
    assert facts.count("threading.Lock", "timed_out") == 1


def test_a_nested_hold_of_an_rlock_counts_from_the_outermost_acquire(tmp_path: Path) -> None:
    path = tmp_path / "run.clt"
    with cl.record(path, level="trace"):
        lock = threading.RLock()
        with lock:
            time.sleep(0.03)
            with lock:
                time.sleep(0.01)
            time.sleep(0.03)
    facts = Facts(path)
    (hold,) = facts.holds("threading.RLock")
    assert ms(hold) >= 70
    assert facts.count("threading.RLock", "acquires") == 1
    assert facts.count("threading.RLock", "recursions") == 1


def test_two_overlapping_holds_of_a_semaphore_are_two_holds(tmp_path: Path) -> None:
    path = tmp_path / "run.clt"
    with cl.record(path, level="trace"):
        semaphore = threading.Semaphore(2)

        def first() -> None:
            with semaphore:
                time.sleep(0.1)

        def second() -> None:
            time.sleep(0.05)
            with semaphore:
                time.sleep(0.1)

        run_threads(first=first, second=second)
    facts = Facts(path)
    early, late = facts.holds("threading.Semaphore")
    assert facts.name(early["thread"]) == "first"
    assert facts.name(late["thread"]) == "second"
    assert ms(early) >= 100
    assert ms(late) >= 100
    assert int(late["start_ns"]) < int(early["end_ns"])


def test_waiting_for_a_condition_is_seen_and_is_not_contention(tmp_path: Path) -> None:
    path = tmp_path / "run.clt"
    with cl.record(path):
        condition = threading.Condition()
        waiting = threading.Event()

        def waiter() -> None:
            with condition:
                waiting.set()
                condition.wait()

        def notifier() -> None:
            waiting.wait()
            time.sleep(0.05)
            with condition:
                condition.notify()

        run_threads(waiter=waiter, notifier=notifier)
    facts = Facts(path)
    (wait,) = facts.coordination("threading.RLock in Condition")
    assert ms(wait) >= 45
    assert facts.name(wait["holder"]) == "notifier"


def test_a_task_that_waits_50_ms_for_an_asyncio_lock_waits_50_ms(tmp_path: Path) -> None:
    path = tmp_path / "run.clt"

    async def main() -> None:
        lock = asyncio.Lock()

        async def culprit() -> None:
            async with lock:
                await asyncio.sleep(0.05)

        async def victim() -> None:
            async with lock:
                pass

        tasks = [asyncio.create_task(task(), name=task.__name__) for task in (culprit, victim)]
        await asyncio.gather(*tasks)

    with cl.record(path):
        asyncio.run(main())
    facts = Facts(path)
    (wait,) = facts.waits("asyncio.Lock")
    assert ms(wait) >= 45
    assert facts.name(wait["thread"]) == "victim"
    assert facts.name(wait["holder"]) == "culprit"


def test_one_put_is_one_event(tmp_path: Path) -> None:
    path = tmp_path / "run.clt"
    with cl.record(path, level="trace"):
        line: queue.Queue[int] = queue.Queue()
        for item in range(100):
            line.put(item)
    facts = Facts(path)
    assert len(facts.locks("threading.Lock in Queue")) == 1
    assert facts.count("threading.Lock in Queue", "acquires") == 100
    assert len(facts.holds("threading.Lock in Queue")) == 100
    assert not facts.waits("threading.Lock in Queue")
    assert not facts.coordination("threading.Lock in Queue")


def test_locks_from_before_the_start_and_names_bound_before_it_are_seen(tmp_path: Path) -> None:
    program = """
        import sys
        import contention_lab as cl
        from threading import Lock, Thread
        from time import sleep

        before = Lock()
        session = cl.record(sys.argv[1], existing=True)
        session.start()
        after = Lock()
        def hold(lock):
            with lock:
                sleep(0.02)
        for lock_name in ("before", "after"):
            threads = [Thread(target=hold, args=(globals()[lock_name],)) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        session.stop()
    """
    path = tmp_path / "run.clt"
    subprocess.run([sys.executable, "-c", textwrap.dedent(program), path], check=True, timeout=60)
    facts = Facts(path)
    waits = [wait for wait in facts.waits("threading.Lock") if ms(wait) > 5]
    assert len({int(wait["lock"]) for wait in waits}) == 2


def test_a_semaphore_stays_an_instance_of_its_class(tmp_path: Path) -> None:
    before = threading.Semaphore()
    with cl.record(tmp_path / "run.clt"):
        during = threading.Semaphore()
        assert isinstance(before, threading.Semaphore)
        assert isinstance(during, threading.Semaphore)
        assert type(during) is type(before)
    assert isinstance(during, threading.Semaphore)
