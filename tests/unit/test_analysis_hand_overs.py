"""Locks used as signals: when they are, when not, and what is then said."""

from __future__ import annotations

from typing import Any

import pytest
from coordination_scene import MS, Scene

from contention_lab.analysis.hand_overs import handed_over, with_signals
from contention_lab.trace import HoldFlag, Outcome, WaitKind


class Bell:
    """Three workers wait for a lock or semaphore that a fourth thread releases every 20 ms."""

    def __init__(
        self,
        kind: str = "threading.Semaphore",
        *,
        rings: int = 30,
        arming: int = 0,
        own: int = 0,
        ringer_acquires: int = 0,
    ) -> None:
        self.scene = scene = Scene(20.0 * (rings + 2))
        self.bell = bell = scene.lock(kind, 3, "bell")
        self.ringer = ringer = scene.thread("ringer")
        workers = [scene.thread(f"worker {k}") for k in range(3)]
        taking, ringing = scene.stack(("worker", 7)), scene.stack(("ring", 20))
        site, facts = scene.frame("worker", 7), {"flags": int(HoldFlag.HANDED_OFF)}
        contention = WaitKind.CONTENTION
        for turn in range(rings):
            at = 20.0 * (turn + 1)
            taker, after = workers[turn % 3], workers[(turn + 1) % 3]
            scene.wait(bell, taker, max(0.0, at - 59.0), at, taking, by=after, kind=contention)
            scene.hold(
                *(bell, taker, at, at + 20.0),
                site=site,
                stack=ringing,
                waiters=2,
                release_thread=taker if turn < own else ringer,
                **facts,
            )
        for number, worker in enumerate(workers):
            scene.builder.add_counter(
                *(bell, worker),
                acquires=rings // 3,
                contended=rings // 3,
                wait_ns=rings // 3 * 59 * MS,
                park_ns=rings // 3 * 59 * MS,
                hold_ns=20 * MS * (number < own),
                hold_histogram=releases(own // 3),
            )
        scene.builder.add_counter(
            *(bell, ringer),
            acquires=arming + ringer_acquires,
            hold_ns=rings * 20 * MS,
            hold_histogram=releases(rings - own),
        )


def releases(count: int) -> Any:
    """Return a histogram of as many holds."""
    return [0] * 24 + [count] + [0] * 7


@pytest.mark.parametrize("kind", ["threading.Semaphore", "threading.Lock", "asyncio.Semaphore"])
def test_what_is_never_released_by_those_who_acquire_it_is_a_signal(kind: str) -> None:
    bell = Bell(kind)

    assert handed_over(bell.scene.trace()) == {bell.bell}


def test_waiting_for_a_signal_accuses_no_lock() -> None:
    diagnosis = Bell().scene.diagnosis()

    assert diagnosis.verdict in {"idle-wait", "healthy"}
    assert all(finding.lock is None for finding in diagnosis.findings)


def test_whoever_arms_a_lock_may_release_it() -> None:
    assert handed_over(Bell("threading.Lock", arming=1).scene.trace())


@pytest.mark.parametrize("changes", [{"own": 6}, {"ringer_acquires": 5}])
def test_what_some_release_themselves_is_no_signal(changes: dict[str, Any]) -> None:
    scene = Bell(**changes).scene

    assert not handed_over(scene.trace())
    assert scene.finding("serialised-by-lock") is not None


def test_a_lock_of_several_processes_is_no_signal() -> None:
    assert not handed_over(Bell("multiprocessing.Lock").scene.trace())


def test_the_thread_that_released_last_has_ended_the_wait() -> None:
    bell = Bell()
    trace = with_signals(bell.scene.trace())

    assert not len(trace.holds)
    assert set(trace.waits["kind"].tolist()) == {WaitKind.COORDINATION}
    assert trace.waits["holder"].tolist()[1:] == [bell.ringer] * 29
    assert not trace.counters["wait_ns"].any()
    assert trace.counters["acquires"].sum() == 30


def test_a_signal_that_never_comes_has_no_sender() -> None:
    bell = Bell()
    late = bell.scene.thread("late")
    stack = bell.scene.stack(("worker", 7))
    kind = WaitKind.CONTENTION
    bell.scene.wait(bell.bell, late, 600, 620, stack, kind=kind, outcome=Outcome.OPEN)

    waits = with_signals(bell.scene.trace()).waits

    assert waits["kind"][-1] == WaitKind.COORDINATION
    assert waits["holder"][-1] == 0
