"""What is recorded of threading, queue and concurrent.futures, with known numbers."""

from __future__ import annotations

import queue
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from typing import TYPE_CHECKING, Any

import pytest
from recorded_facts import MS, Facts, make_wait, ms, run_threads

import contention_lab as cl
from contention_lab.capture.metadata import gil_enabled
from contention_lab.trace.schema import HoldFlag, Outcome, WaitKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

KINDS = ["threading.Semaphore", "threading.BoundedSemaphore"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.clt"


class InterruptedByTestError(Exception):
    """Raised by the signal handler of a test."""


@pytest.fixture
def interrupted() -> Iterator[Callable[[Callable[[], Any]], None]]:
    """Return what calls a function that must wait, and interrupts it after 50 ms."""

    def handler(number: int, frame: Any) -> None:
        raise InterruptedByTestError

    def interrupted(function: Callable[[], Any]) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(InterruptedByTestError):
            function()

    before = signal.signal(signal.SIGALRM, handler)
    yield interrupted
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def make(type_name: str) -> threading.Semaphore:
    return (threading.Semaphore if type_name == KINDS[0] else threading.BoundedSemaphore)(1)


def test_condition_wait_is_split_where_the_lock_is_wanted_again(path: Path) -> None:
    with cl.record(path):
        condition = threading.Condition()
        waiting = threading.Event()

        def waiter() -> None:
            with condition:
                waiting.set()
                assert condition.wait(timeout=30)

        def notifier() -> None:
            waiting.wait()
            time.sleep(0.04)
            with condition:
                condition.notify()
                time.sleep(0.08)  # the waiter has been notified and wants the lock

        run_threads(waiter=waiter, notifier=notifier)
    facts = Facts(path)
    kind = "threading.RLock in Condition"
    (signal_wait,) = facts.coordination(kind)
    (again,) = [wait for wait in facts.waits(kind) if facts.name(wait["thread"]) == "waiter"]
    assert ms(signal_wait) >= 15
    assert ms(again) >= 30
    assert int(again["start_ns"]) >= int(signal_wait["end_ns"])
    assert facts.functions(signal_wait["stack"])[0] == "waiter"
    assert facts.name(signal_wait["holder"]) == "notifier"
    assert facts.functions(signal_wait["holder_stack"])[0] == "notifier"
    assert facts.name(again["holder"]) == "notifier"
    assert facts.count(kind, "contended") == len(facts.waits(kind))


def test_a_condition_that_times_out_or_is_not_owned_says_so(path: Path) -> None:
    with cl.record(path):
        condition = threading.Condition()
        with pytest.raises(RuntimeError, match="un-acquired"):
            condition.wait()
        with condition:
            assert not condition.wait(0.02)
    facts = Facts(path)
    (late,) = facts.coordination("threading.RLock in Condition")
    assert late["outcome"] == Outcome.TIMED_OUT
    assert ms(late) >= 20
    assert late["holder"] == 0


def test_a_condition_made_before_the_recording_is_recorded_as_itself(path: Path) -> None:
    class Strange:
        """Somebody's own lock."""

        def __init__(self) -> None:
            self._lock = threading.Lock()
            self.acquire = self._lock.acquire
            self.release = self._lock.release

        def __enter__(self) -> bool:
            return self._lock.__enter__()

        def __exit__(self, *args: object) -> None:
            self._lock.release()

    condition = threading.Condition(Strange())  # type: ignore[arg-type]
    with cl.record(path), condition:
        condition.wait(0.02)
    (late,) = Facts(path).coordination("threading.Condition")
    assert ms(late) >= 20


def test_an_interrupted_wait_is_recorded_as_that(
    path: Path, interrupted: Callable[[Callable[[], Any]], None]
) -> None:
    with cl.record(path):
        condition = threading.Condition()
        with condition:
            interrupted(condition.wait)
        interrupted(threading.Semaphore(0).acquire)
        interrupted(queue.SimpleQueue().get)
    facts = Facts(path)
    for kind in ("threading.RLock in Condition", "threading.Semaphore", "queue.SimpleQueue"):
        (found,) = facts.coordination(kind)
        assert found["outcome"] == Outcome.INTERRUPTED
        assert ms(found) >= 45


@pytest.mark.parametrize("kind", KINDS)
def test_a_wait_for_a_permit_names_the_holder_and_what_it_was_doing(kind: str, path: Path) -> None:
    with cl.record(path):
        semaphore = make(kind)
        make_wait(semaphore.acquire, semaphore.release)
    facts = Facts(path)
    (found,) = facts.waits(kind)
    assert ms(found) >= 30
    assert facts.name(found["thread"]) == "victim"
    assert facts.name(found["holder"]) == "culprit"
    assert facts.site(found["holder_site"]) == "culprit"
    assert "victim" in facts.functions(found["stack"])
    (hold,) = facts.holds(kind)
    assert facts.name(hold["thread"]) == "culprit"
    assert facts.count(kind, "acquires") == 2
    assert facts.count(kind, "contended") == 1
    assert facts.count(kind, "blocking_holds") == 1
    assert facts.count(f"threading.Lock in {kind.split('.')[1]}", "contended") == 0


@pytest.mark.parametrize("type_name", KINDS)
def test_semaphores_of_a_derived_class_are_made_where_the_program_makes_them(
    type_name: str, path: Path
) -> None:
    with cl.record(path):
        permits = type("Permits", (type(make(type_name)),), {})
        for _ in range(100):
            with permits(2):
                pass
    sites = [lock.site for lock in Facts(path).trace.locks.values() if lock.type == type_name]
    here = "test_semaphores_of_a_derived_class_are_made_where_the_program_makes_them"
    made = {site.line for site in sites if site is not None and site.function == here}
    assert sum(site is not None and site.function == here for site in sites) == 100
    assert len(made) == 1


def test_the_lock_inside_a_semaphore_is_a_part_of_it(path: Path) -> None:
    with cl.record(path):
        semaphore = threading.Semaphore()
        with semaphore:
            pass
    locks = {lock.type: lock for lock in Facts(path).trace.locks.values()}
    whole, part = locks["threading.Semaphore"], locks["threading.Lock in Semaphore"]
    assert part.parent == whole.id


def test_every_hold_of_a_semaphore_that_blocked_somebody_is_recorded(path: Path) -> None:
    with cl.record(path):
        semaphore = threading.Semaphore(2)
        both = threading.Barrier(3)

        def hold(seconds: float) -> None:
            with semaphore:
                both.wait()
                time.sleep(seconds)

        def victim() -> None:
            both.wait()
            time.sleep(0.01)
            with semaphore:
                pass

        run_threads(short=lambda: hold(0.05), long=lambda: hold(0.1), victim=victim)
    facts = Facts(path)
    assert {facts.name(hold["thread"]) for hold in facts.holds("threading.Semaphore")} == {
        "short",
        "long",
    }


@pytest.mark.parametrize("kind", KINDS)
def test_tries_and_timeouts_for_a_permit_are_told_apart(kind: str, path: Path) -> None:
    with cl.record(path):
        semaphore = make(kind)
        semaphore.acquire()

        def poll() -> None:
            for _ in range(1000):
                assert not semaphore.acquire(blocking=False)
            assert not semaphore.acquire(timeout=0)
            assert not semaphore.acquire(timeout=0.02)

        run_threads(poller=poll)
    facts = Facts(path)
    assert facts.count(kind, "failed_tries") == 1001
    assert facts.count(kind, "timed_out") == 1
    tries = [w for w in facts.waits(kind) if w["outcome"] == Outcome.FAILED_TRY]
    (late,) = [w for w in facts.waits(kind) if w["outcome"] == Outcome.TIMED_OUT]
    assert 1 <= len(tries) < 500
    assert ms(late) >= 20
    assert {facts.name(w["holder"]) for w in (*tries, late)} == {"MainThread"}


def test_a_permit_given_back_by_another_thread_is_handed_off(path: Path) -> None:
    with cl.record(path, level="trace"):
        semaphore = threading.Semaphore(1)
        semaphore.acquire()
        run_threads(releaser=semaphore.release)
    facts = Facts(path)
    (hold,) = facts.holds("threading.Semaphore")
    assert hold["flags"] & HoldFlag.HANDED_OFF
    assert facts.name(hold["thread"]) == "MainThread"
    assert facts.name(hold["release_thread"]) == "releaser"


def test_a_semaphore_at_zero_that_nobody_holds_is_a_signal(path: Path) -> None:
    with cl.record(path):
        semaphore = threading.Semaphore(0)

        def signaller() -> None:
            time.sleep(0.03)
            semaphore.release()

        run_threads(waiter=semaphore.acquire, signaller=signaller)
    facts = Facts(path)
    (found,) = facts.coordination("threading.Semaphore")
    assert facts.name(found["thread"]) == "waiter"
    assert facts.name(found["holder"]) == "signaller"
    assert not facts.waits("threading.Semaphore")
    assert facts.count("threading.Semaphore", "contended") == 0
    assert facts.count("threading.Semaphore", "acquires") == 1


def test_a_lock_released_by_another_thread_ends_there(path: Path) -> None:
    with cl.record(path, level="trace"):
        lock = threading.Lock()
        lock.acquire()
        run_threads(releaser=lambda: time.sleep(0.03) or lock.release())  # type: ignore[func-returns-value]
    facts = Facts(path)
    (hold,) = facts.holds("threading.Lock")
    assert hold["flags"] & HoldFlag.HANDED_OFF
    assert ms(hold) >= 25
    assert facts.name(hold["release_thread"]) == "releaser"


@pytest.mark.skipif(not gil_enabled(), reason="there is no GIL")
def test_the_wait_for_the_gil_after_a_lock_is_a_part_of_its_own(path: Path) -> None:
    with cl.record(path):
        lock = threading.Lock()
        stop = threading.Event()

        def burn() -> None:
            while not stop.is_set():
                sum(range(2000))

        def turns() -> None:
            for _ in range(30):
                with lock:
                    time.sleep(0.001)

        burner = threading.Thread(target=burn)
        burner.start()
        run_threads(one=turns, two=turns)
        stop.set()
        burner.join()
    facts = Facts(path)
    assert facts.count("threading.Lock", "gil_ns") > 0
    for found in facts.waits("threading.Lock"):
        parts = int(found["spin_ns"]) + int(found["park_ns"]) + int(found["gil_ns"])
        assert parts <= int(found["end_ns"]) - int(found["start_ns"])


@pytest.mark.parametrize("make_queue", [queue.Queue, queue.LifoQueue, queue.PriorityQueue])
def test_a_put_that_waits_for_room_is_one_wait_that_names_the_getter(
    make_queue: Callable[[int], queue.Queue[int]], path: Path
) -> None:
    with cl.record(path):
        line = make_queue(1)
        line.put(1)

        def getter() -> None:
            time.sleep(0.04)
            line.get()

        run_threads(putter=lambda: line.put(2), getter=getter)
    facts = Facts(path)
    kind = "threading.Lock in Queue"
    (found,) = facts.coordination(kind)
    assert facts.functions(found["stack"])[0] == "put"
    assert facts.name(found["thread"]) == "putter"
    assert facts.name(found["holder"]) == "getter"
    assert "get" in facts.functions(found["holder_stack"])
    assert ms(found) >= 10
    (lock,) = [lock for lock in facts.trace.locks.values() if lock.type == kind]
    assert lock.site is not None
    assert lock.site.function.endswith("names_the_getter")


def test_a_simple_queue_tells_who_waited_for_an_item_and_who_brought_it(path: Path) -> None:
    with cl.record(path):
        line: queue.SimpleQueue[int] = queue.SimpleQueue()

        def producer() -> None:
            time.sleep(0.03)
            line.put(1)

        run_threads(consumer=line.get, producer=producer)
        with pytest.raises(queue.Empty):
            line.get(timeout=0.02)
        with pytest.raises(queue.Empty):
            line.get_nowait()
    facts = Facts(path)
    got, late = facts.coordination("queue.SimpleQueue")
    assert facts.name(got["thread"]) == "consumer"
    assert facts.name(got["holder"]) == "producer"
    assert facts.functions(got["holder_stack"])[0] == "producer"
    assert late["outcome"] == Outcome.TIMED_OUT


def test_events_and_barriers_are_waited_for_by_coordination(path: Path) -> None:
    with cl.record(path):
        event = threading.Event()
        barrier = threading.Barrier(2)
        run_threads(waiter=event.wait, setter=lambda: time.sleep(0.03) or event.set())  # type: ignore[func-returns-value]
        run_threads(early=barrier.wait, late=lambda: time.sleep(0.03) or barrier.wait())  # type: ignore[func-returns-value]
    facts = Facts(path)
    (for_event,) = facts.coordination("threading.Lock in Event")
    (for_barrier,) = facts.coordination("threading.Lock in Barrier")
    assert (facts.name(for_event["thread"]), facts.name(for_event["holder"])) == (
        "waiter",
        "setter",
    )
    assert (facts.name(for_barrier["thread"]), facts.name(for_barrier["holder"])) == (
        "early",
        "late",
    )


def test_a_join_names_the_thread_that_was_waited_for(path: Path) -> None:
    with cl.record(path):
        slow = threading.Thread(target=time.sleep, args=(0.05,), name="slow one")
        slow.start()
        slow.join(0.01)
        slow.join()
        slow.join()  # it is over: not a wait
        with pytest.raises(RuntimeError):
            threading.current_thread().join()
        with pytest.raises(RuntimeError):
            threading.Thread().join()
    facts = Facts(path)
    late, found = facts.coordination("threading.Thread")
    assert late["outcome"] == Outcome.TIMED_OUT
    assert found["outcome"] == Outcome.ACQUIRED
    assert {facts.trace.locks[int(w["lock"])].name for w in (late, found)} == {"slow one"}


@pytest.mark.parametrize("is_over", [False, True])
def test_a_thread_that_was_joined_has_an_end_even_if_that_ends_the_recording(
    is_over: bool, path: Path
) -> None:
    # The system ends a thread a little after Python has, at times after the recording.
    for _ in range(12):
        with cl.record(path):
            lock = threading.Lock()

            def work(lock: threading.Lock = lock) -> None:
                time.sleep(0.005)
                with lock:
                    pass

            ending = threading.Thread(target=work, name="ending")
            with lock:
                ending.start()
                time.sleep(0.006)
            while is_over and ending.is_alive():
                pass
            ending.join()
        trace = cl.load(path)
        (seen,) = (one for one in trace.threads.values() if one.name == "ending")
        assert 0 < seen.end_ns <= trace.duration_ns


def test_waiting_for_a_result_names_the_worker_that_brought_it(path: Path) -> None:
    with cl.record(path), ThreadPoolExecutor(1, "pool") as pool:
        future = pool.submit(time.sleep, 0.04)
        future.result()
        assert future.exception() is None
        with pytest.raises(TimeoutError):
            pool.submit(time.sleep, 0.05).result(timeout=0.01)
    facts = Facts(path)
    found, late = facts.coordination("concurrent.futures.Future")
    assert facts.name(found["holder"]).startswith("pool_0")
    assert "result" in facts.functions(found["stack"])
    assert late["outcome"] == Outcome.TIMED_OUT


def test_waiting_for_several_results_is_seen(path: Path) -> None:
    with cl.record(path), ThreadPoolExecutor(2) as pool:
        wait([pool.submit(time.sleep, 0.03) for _ in range(2)])
        assert len(list(as_completed([pool.submit(time.sleep, 0.03) for _ in range(2)]))) == 2
    facts = Facts(path)
    assert facts.coordination("threading.Lock in wait")
    assert facts.coordination("threading.Lock in as_completed")


def work(seconds: float) -> None:
    time.sleep(seconds)


def test_tasks_that_wait_for_a_worker_are_parties_and_no_threads_time(path: Path) -> None:
    with cl.record(path), ThreadPoolExecutor(1, "pool") as pool:
        futures = [pool.submit(work, 0.04) for _ in range(3)]
        for future in futures:
            future.result()
    facts = Facts(path)
    kind = "concurrent.futures.ThreadPoolExecutor"
    first, second, third = facts.coordination(kind)
    assert ms(first) < ms(third)
    assert ms(second) < ms(third)
    assert ms(third) >= 40
    assert {facts.name(w["thread"]) for w in (first, second, third)} == {"work"}
    assert "test_tasks_that_wait" in str(facts.functions(third["stack"]))
    assert facts.count(kind, "acquires") == 3
    assert facts.count(kind, "hold_ns") >= 120 * MS
    for field in ("wait_ns", "park_ns", "contended"):
        assert facts.count(kind, field) == 0
    kinds = [lock.type for lock in facts.trace.locks.values()]
    assert "threading.Semaphore in ThreadPoolExecutor" not in kinds
    assert len([name for name in kinds if name == "threading.Lock in ThreadPoolExecutor"]) <= 1


def test_a_pool_of_many_tasks_takes_few_entries(path: Path) -> None:
    with cl.record(path), ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(int) for _ in range(2000)]:
            future.result()
    assert len(Facts(path).trace.locks) < 100


def test_time_that_threads_waited_is_counted_once(path: Path) -> None:
    with cl.record(path):
        semaphore = threading.Semaphore(1)

        def turns() -> None:
            for _ in range(5):
                with semaphore:
                    time.sleep(0.01)

        run_threads(one=turns, two=turns)
    facts = Facts(path)
    by_records = sum(int(w["end_ns"] - w["start_ns"]) for w in facts.waits("threading.Semaphore"))
    assert facts.count("threading.Semaphore", "wait_ns") == by_records
    assert facts.count("threading.Semaphore", "park_ns") == by_records


def test_permits_are_no_matter_of_an_earlier_recording(tmp_path: Path) -> None:
    semaphore = None
    for number in range(3):
        path = tmp_path / f"{number}.clt"
        with cl.record(path, level="trace"):
            semaphore = semaphore or threading.Semaphore(3)
            with semaphore:
                time.sleep(0.01)
            semaphore.acquire()  # still out when the recording ends
        facts = Facts(path)
        (hold,) = facts.holds("threading.Semaphore")
        assert ms(hold) >= 10
        semaphore.release()


def test_coordination_is_no_contention_in_the_totals(path: Path) -> None:
    with cl.record(path) as session:
        event = threading.Event()
        run_threads(waiter=event.wait, setter=lambda: time.sleep(0.03) or event.set())  # type: ignore[func-returns-value]
    facts = Facts(path)
    kinds = {int(wait["kind"]) for wait in facts.trace.waits}
    assert kinds == {WaitKind.COORDINATION}
    assert session.summary is not None
