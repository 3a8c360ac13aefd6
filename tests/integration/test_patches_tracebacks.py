"""Tracebacks, stacks and warnings through recorded methods: frame by frame as without us."""

from __future__ import annotations

import inspect
import multiprocessing
import queue
import signal
import sys
import threading
import traceback
import warnings
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import contention_lab as cl

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def fail() -> None:
    raise KeyError("of the task")


def wait_unowned() -> None:
    threading.Condition().wait()


def wait_for_unowned() -> None:
    threading.Condition(threading.Lock()).wait_for(lambda: False)


def wait_with_a_text() -> None:
    with threading.Condition() as condition:
        threading.Condition.wait(self=condition, timeout="soon")  # type: ignore[arg-type]


def notify_unowned() -> None:
    threading.Condition().notify()


def notify_all_unowned() -> None:
    threading.Condition(threading.Lock()).notify_all()


def release_too_often() -> None:
    threading.BoundedSemaphore().release()


def release_none() -> None:
    threading.Semaphore().release(0)


def acquire_with_both() -> None:
    threading.Semaphore().acquire(False, 1)


def make_a_negative_one() -> None:
    threading.Semaphore(-1)


def join_itself() -> None:
    threading.current_thread().join()


def join_unstarted() -> None:
    threading.Thread().join()


def join_with_a_text() -> None:
    blocked = threading.Event()
    thread = threading.Thread(target=blocked.wait)
    thread.start()
    try:
        thread.join("soon")  # type: ignore[arg-type]
    finally:
        blocked.set()
        thread.join()


def wait_at_a_broken_barrier() -> None:
    barrier = threading.Barrier(2)
    barrier.abort()
    barrier.wait()


def get_nothing() -> None:
    queue.Queue[int]().get_nowait()


def get_nothing_in_time() -> None:
    queue.Queue[int]().get(timeout=0.001)


def put_too_much() -> None:
    line = queue.Queue[int](1)
    line.put(1)
    line.put_nowait(2)


def no_result_in_time() -> None:
    Future[int]().result(0.001)


def result_of_a_failed_task() -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(fail).result()


def result_of_a_cancelled_task() -> None:
    future = Future[int]()
    future.cancel()
    future.result()


def submit_after_the_end() -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    pool.submit(fail)


def submit_nothing() -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit()  # type: ignore[call-arg]


def make_a_pool_of_nobody() -> None:
    ThreadPoolExecutor(0)


def release_of_another_process_too_often() -> None:
    PROCESSES.Lock().release()


def release_a_bounded_one_of_processes_too_often() -> None:
    PROCESSES.BoundedSemaphore().release()


def release_a_nesting_one_of_processes_unowned() -> None:
    PROCESSES.RLock().release()


def acquire_one_of_processes_with_a_text() -> None:
    PROCESSES.Lock().acquire(timeout="soon")  # type: ignore[arg-type]


def enter_one_of_processes_twice_until_a_signal() -> None:
    def give_up(*_: object) -> None:
        raise ZeroDivisionError

    lock = PROCESSES.Lock()
    signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    try:
        with lock, lock:
            pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


PROCESSES = multiprocessing.get_context("fork")

FAILURES: list[Callable[[], None]] = [
    *(wait_unowned, wait_for_unowned, wait_with_a_text, notify_unowned, notify_all_unowned),
    *(release_too_often, release_none, acquire_with_both, make_a_negative_one),
    *(join_itself, join_unstarted, join_with_a_text, wait_at_a_broken_barrier),
    *(get_nothing, get_nothing_in_time, put_too_much),
    *(no_result_in_time, result_of_a_failed_task, result_of_a_cancelled_task),
    *(submit_after_the_end, submit_nothing, make_a_pool_of_nobody),
    *(release_of_another_process_too_often, release_a_bounded_one_of_processes_too_often),
    *(release_a_nesting_one_of_processes_unowned, acquire_one_of_processes_with_a_text),
    enter_one_of_processes_twice_until_a_signal,
]

Frames = list[tuple[str, int | None, str]]


def frames(function: Callable[[], None]) -> tuple[str, Frames]:
    """Return what a call raises, and file, line and name of the frames it passes through."""
    try:
        function()
    except (Exception, CancelledError) as error:
        found = traceback.extract_tb(error.__traceback__)
        return repr(error), [(frame.filename, frame.lineno, frame.name) for frame in found]
    raise AssertionError("it raised nothing")


@pytest.mark.parametrize("function", FAILURES, ids=lambda function: function.__name__)
def test_a_traceback_is_the_one_without_us(function: Callable[[], None], tmp_path: Path) -> None:
    without = frames(function)
    assert len(without[1]) >= 2
    with cl.record(tmp_path / "run.clt"):
        assert frames(function) == without
        for _ in range(50):  # the interpreter has specialised the calls by now
            recorded = frames(function)
        assert recorded == without


def looked() -> tuple[list[list[tuple[str, str]]], list[tuple[str, int]]]:
    """Look at the stack from inside `Condition.wait`; what was seen, and was warned of."""
    lock = threading.RLock()
    condition = threading.Condition(lock)
    seen: list[list[tuple[str, str]]] = []

    def release_save() -> Any:
        frame = sys._getframe(2)
        seen.append([(f.filename, f.name) for f in traceback.extract_stack()])
        seen.append([(f.filename, f.function) for f in inspect.stack()])
        seen.append([(frame.f_code.co_filename, frame.f_code.co_name)])
        warnings.warn("of who waits", stacklevel=3)
        return lock._release_save()  # type: ignore[attr-defined]

    condition._release_save = release_save  # type: ignore[attr-defined]
    with warnings.catch_warnings(record=True) as caught, condition:
        warnings.simplefilter("always")
        condition.wait(0.001)
    return seen, [(warning.filename, warning.lineno) for warning in caught]


def test_stacks_and_warnings_name_the_frames_that_they_name_without_us(tmp_path: Path) -> None:
    without = looked()
    with cl.record(tmp_path / "run.clt"):
        recorded = looked()
    assert recorded == without
    assert recorded[0][2] == [(__file__, "looked")]
    assert [filename for filename, _ in recorded[1]] == [__file__]


def test_a_lock_of_processes_is_what_it_is_without_us(tmp_path: Path) -> None:
    def looked_at() -> list[object]:
        lock = PROCESSES.RLock()
        inner = lock._semlock  # type: ignore[attr-defined]
        with lock:
            nested = lock.acquire(), lock.acquire(False), lock.acquire(block=True, timeout=1)
        return [
            nested,
            sorted(vars(lock)),
            type(lock.acquire),
            lock.acquire.__qualname__,
            lock.acquire.__self__ is inner,  # type: ignore[attr-defined]
            lock.release == inner.release,
            type(inner),
        ]

    without = looked_at()
    with cl.record(tmp_path / "run.clt"):
        assert looked_at() == without
