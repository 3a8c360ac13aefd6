"""What is recorded of multiprocessing: a trace for each process, one name for each lock."""

from __future__ import annotations

import multiprocessing
import pickle
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from recorded_facts import Facts, make_wait, ms, run_threads

import contention_lab as cl
from contention_lab.trace.schema import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KINDS = ["Lock", "RLock", "Semaphore", "BoundedSemaphore"]
PROGRAM = """
    import multiprocessing
    import sys
    import time
    import contention_lab as cl

    def hold(lock, ready):
        with lock:
            ready.set()
            time.sleep(0.1)

    if __name__ == "__main__":
        path, method = sys.argv[1:]
        with cl.record(path, subprocesses=True):
            context = multiprocessing.get_context(method)
            lock, ready = context.Lock(), context.Event()
            child = context.Process(target=hold, args=(lock, ready))
            child.start()
            assert ready.wait(30)
            with lock:
                pass
            child.join()
            assert child.exitcode == 0
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.clt"


@pytest.fixture
def fork() -> Iterator[Any]:
    return multiprocessing.get_context("fork")


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_lock_has_the_same_name_in_every_process(method: str, tmp_path: Path) -> None:
    program, path = tmp_path / "program.py", tmp_path / "run.clt"
    program.write_text(textwrap.dedent(PROGRAM))
    subprocess.run(
        [sys.executable, "-W", "ignore", program, path, method],
        check=True,
        timeout=60,
    )
    parent = Facts(path)
    children = [Facts(child) for child in tmp_path.glob("run.*.clt")]
    (found,) = parent.waits("multiprocessing.Lock")
    name = parent.trace.locks[int(found["lock"])].name
    assert name.startswith("/")
    assert ms(found) >= 10
    named = [
        (facts, lock.id)
        for facts in children
        for lock in facts.trace.locks.values()
        if lock.type == "multiprocessing.Lock" and lock.name == name
    ]
    (facts, lock_id) = named[0]
    rows = [row for row in facts.trace.counters if int(row["lock"]) == lock_id]
    assert sum(int(row["acquires"]) for row in rows) == 1
    assert sum(int(row["hold_ns"]) for row in rows) >= 90e6


@pytest.mark.parametrize("kind", KINDS)
def test_threads_of_one_process_name_the_holder(kind: str, path: Path, fork: Any) -> None:
    with cl.record(path):
        lock = getattr(fork, kind)()
        make_wait(lock.acquire, lock.release)
    facts = Facts(path)
    (found,) = facts.waits(f"multiprocessing.{kind}")
    assert ms(found) >= 30
    assert facts.name(found["thread"]) == "victim"
    assert facts.name(found["holder"]) == "culprit"
    assert facts.site(found["holder_site"]) == "culprit"
    holds = facts.holds(f"multiprocessing.{kind}")  # all: who waits elsewhere is not known here
    assert [facts.name(hold["thread"]) for hold in holds] == ["culprit", "victim"]
    assert facts.count(f"multiprocessing.{kind}", "acquires") == 2


def test_timeouts_and_tries_are_told_apart(path: Path, fork: Any) -> None:
    with cl.record(path):
        lock = fork.Lock()
        lock.acquire()

        def poll() -> None:
            assert not lock.acquire(block=False)
            assert not lock.acquire(timeout=0.02)

        run_threads(poller=poll)
        lock.release()
    facts = Facts(path)
    tried, late = facts.waits("multiprocessing.Lock")
    assert tried["outcome"] == Outcome.FAILED_TRY
    assert late["outcome"] == Outcome.TIMED_OUT
    assert ms(late) >= 20
    assert facts.name(late["holder"]) == "MainThread"
    assert facts.count("multiprocessing.Lock", "failed_tries") == 1


def test_an_rlock_is_held_from_its_outermost_acquire(path: Path, fork: Any) -> None:
    with cl.record(path, level="trace"):
        lock = fork.RLock()
        with lock:
            time.sleep(0.01)
            with lock:
                time.sleep(0.01)
            time.sleep(0.01)
    facts = Facts(path)
    (hold,) = facts.holds("multiprocessing.RLock")
    assert ms(hold) >= 30
    assert facts.count("multiprocessing.RLock", "acquires") == 1
    assert facts.count("multiprocessing.RLock", "recursions") == 1


def test_condition_wait_is_split_and_its_semaphores_are_not_seen(path: Path, fork: Any) -> None:
    with cl.record(path):
        condition, event = fork.Condition(), fork.Event()
        waiting = threading.Event()

        def waiter() -> None:
            with condition:
                waiting.set()
                assert condition.wait(30)
            assert event.wait(30)

        def notifier() -> None:
            waiting.wait()
            time.sleep(0.03)
            with condition:
                condition.notify()
                time.sleep(0.1)
            event.set()

        run_threads(waiter=waiter, notifier=notifier)
    facts = Facts(path)
    kind = "multiprocessing.RLock in Condition"
    (signal,) = facts.coordination(kind)
    (again,) = [w for w in facts.waits(kind) if facts.name(w["thread"]) == "waiter"]
    assert ms(signal) >= 10
    assert ms(again) >= 30
    assert int(again["start_ns"]) >= int(signal["end_ns"])
    assert not [lock for lock in facts.trace.locks.values() if "Semaphore" in lock.type]


def test_a_lock_that_another_process_released_is_not_held_for_ever(path: Path, fork: Any) -> None:
    with cl.record(path, level="trace"):
        lock = fork.Lock()
        lock.acquire()
        child = fork.Process(target=lock.release)
        child.start()
        child.join()
        with lock:
            time.sleep(0.01)
    facts = Facts(path)
    (hold,) = facts.holds("multiprocessing.Lock")
    assert ms(hold) >= 10
    assert facts.count("multiprocessing.Lock", "acquires") == 2


def test_what_cannot_be_pickled_says_so_in_the_same_words(path: Path, fork: Any) -> None:
    def facts() -> list[str]:
        said = []
        for thing in (fork.Lock(), fork.Condition()):
            with pytest.raises(RuntimeError) as caught:
                pickle.dumps(thing)
            said.append(str(caught.value))
        with pytest.raises(ValueError, match="semaphore") as refused:
            fork.BoundedSemaphore(1).release()
        return [*said, str(refused.value), repr(fork.Lock()), *sorted(vars(fork.Lock()))]

    without = facts()
    with cl.record(path):
        assert facts() == without


def test_a_pool_works_on_while_it_is_recorded(path: Path, fork: Any) -> None:
    with cl.record(path), fork.Pool(2) as pool:
        assert pool.map(abs, range(-10, 0)) == list(range(10, 0, -1))
    assert cl.load(path).complete


def test_results_of_a_process_pool_are_waited_for(path: Path, fork: Any) -> None:
    with cl.record(path), ProcessPoolExecutor(1, mp_context=fork) as pool:
        pool.submit(time.sleep, 0.05).result()
    facts = Facts(path)
    (found,) = facts.coordination("concurrent.futures.Future")
    assert "result" in facts.functions(found["stack"])
    assert facts.name(found["thread"]) == "MainThread"
