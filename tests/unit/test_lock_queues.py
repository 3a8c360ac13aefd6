"""Queues serve in order, pass over who gave up, and keep the place of who comes back."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from contention_lab.locks import McsLock, TicketLock

if TYPE_CHECKING:
    from collections.abc import Callable

QUEUES: dict[str, Callable[[], Any]] = {
    "ticket": TicketLock,
    "ticket-yield": lambda: TicketLock(yield_after=20),
    "mcs": McsLock,
    "mcs-yield": lambda: McsLock(yield_after=20),
}


class Waiter:
    """A thread that waits for the lock once, or once more when it is told to."""

    def __init__(self, lock: Any, order: list[str], name: str, *timeouts: float) -> None:
        self._lock, self._order, self._name = lock, order, name
        self._timeouts = timeouts or (-1,)
        self.gave_up = threading.Event()
        self.again = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        for number, timeout in enumerate(self._timeouts):
            if number > 0:
                self.again.wait()
            if self._lock.acquire(timeout=timeout):
                self._order.append(self._name)
                self._lock.release()
                return
            self.gave_up.set()


def until_it_spins(thread: threading.Thread) -> None:
    """Return once the thread has used CPU without the GIL for a moment: it is in the queue.

    One that has ended has no clock any more: it was in the queue, and has given up.
    """
    deadline = time.monotonic() + 20
    with suppress(OSError):
        clock = time.pthread_getcpuclockid(thread.ident or 0)
        while time.clock_gettime(clock) < 0.002 and time.monotonic() < deadline:
            time.sleep(0)


@pytest.fixture(params=QUEUES)
def lock(request: pytest.FixtureRequest) -> Any:
    return QUEUES[request.param]()


def test_waiters_are_served_in_the_order_they_came(lock: Any) -> None:
    order: list[str] = []
    waiters = []
    with lock:
        for name in "abcd":
            waiters.append(Waiter(lock, order, name))
            until_it_spins(waiters[-1].thread)
    for waiter in waiters:
        waiter.thread.join()

    assert order == list("abcd")


def test_a_waiter_that_gave_up_is_passed_over(lock: Any) -> None:
    order: list[str] = []
    with lock:
        waiters = [Waiter(lock, order, "a")]
        until_it_spins(waiters[-1].thread)
        waiters += [Waiter(lock, order, "gone", 0.2)]
        until_it_spins(waiters[-1].thread)
        waiters += [Waiter(lock, order, "b")]
        until_it_spins(waiters[-1].thread)
        waiters[1].gave_up.wait()
    for waiter in waiters:
        waiter.thread.join()

    assert order == ["a", "b"]
    assert lock.acquire(blocking=False)


def test_the_last_waiter_that_gave_up_leaves_a_free_lock(lock: Any) -> None:
    order: list[str] = []
    with lock:
        waiters = [Waiter(lock, order, name, 0.02) for name in "abcd"]
        for waiter in waiters:
            waiter.gave_up.wait()
            waiter.thread.join()

    assert order == []
    assert not lock.locked()
    assert lock.acquire(blocking=False)


@pytest.mark.parametrize("name", QUEUES)
def test_a_thread_that_comes_back_has_kept_its_place(name: str) -> None:
    for timeout in (0.1, 1, 10):  # the shortest in which the second is there before the first goes
        order: list[str] = []
        with (lock := QUEUES[name]()):
            first = Waiter(lock, order, "first", timeout, -1)
            until_it_spins(first.thread)
            second = Waiter(lock, order, "second")
            until_it_spins(second.thread)
            in_time = not first.gave_up.is_set()
            first.gave_up.wait()
            clock = time.pthread_getcpuclockid(first.thread.ident or 0)
            before = time.clock_gettime(clock)
            first.again.set()
            while time.clock_gettime(clock) < before + 0.002:
                time.sleep(0)
        first.thread.join()
        second.thread.join()
        if in_time:
            break

    assert order == ["first", "second"]


def test_a_try_does_not_overtake_those_who_wait(lock: Any) -> None:
    order: list[str] = []
    lock.acquire()
    waiter = Waiter(lock, order, "a")
    until_it_spins(waiter.thread)
    assert not lock.acquire(blocking=False)
    lock.release()
    waiter.thread.join()

    assert order == ["a"]


def test_giving_up_ten_thousand_times_leaves_nothing_behind(lock: Any) -> None:
    with lock:
        for _ in range(10_000):
            assert not lock.acquire(timeout=1e-9)
    assert lock.acquire(blocking=False)
    lock.release()
    assert not lock.locked()


def test_a_release_that_nobody_owes_does_not_let_two_in(lock: Any) -> None:
    with pytest.raises(RuntimeError, match="release unlocked lock"):
        lock.release()
    assert lock.acquire(blocking=False)
    assert not lock.acquire(blocking=False)
