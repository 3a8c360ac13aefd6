"""Locks made of a signal for each waiter: when they are, when not, and what is then said."""

from __future__ import annotations

from typing import Final

import pytest
from coordination_scene import MS, Scene, State

from contention_lab.analysis.hand_overs import handed_over, with_signals
from contention_lab.analysis.passed_turns import MADE_BY_HAND
from contention_lab.trace import Outcome, WaitKind

TURN_MS: Final = 10
BOUNDS: Final = ("start_ns", "end_ns")


class Gates:
    """Threads work in turns of 10 ms; each waits by a lock that the one before it releases.

    Parameters
    ----------
    order
        Whose turn it is, by number; the first one has the lock from the start.
    waits
        Which turns ago each came to wait; the one before it by default.
    again
        Whether each thread has one signal, which is used again.
    server
        Whether another thread, which never waits, wakes them instead.
    """

    def __init__(
        self, order: list[int], *, ago: int = 3, again: bool = False, server: bool = False
    ) -> None:
        self.scene = scene = Scene(TURN_MS * (len(order) + 1))
        count = max(order) + 1
        self.threads = threads = [scene.thread(f"worker {k}") for k in range(count)]
        giver = scene.thread("server") if server else 0
        self.enter = enter = scene.stack(("Door.enter", 20), ("work", 40), ("main", 60))
        leave = scene.stack(("Door.leave", 30), ("work", 42), ("main", 60))
        self.locks: list[int] = []
        made: dict[int, int] = {}
        last = dict.fromkeys(range(count), 0)
        site = scene.frame("Door.enter", 20)
        for at, number in enumerate(order[1:], start=1):
            before, now = threads[order[at - 1]], threads[number]
            fresh = not again or number not in made
            lock = scene.lock("threading.Lock", 18, "gate") if fresh else made[number]
            made[number] = lock
            self.locks.append(lock)
            begin, end = max(last[number], TURN_MS * (at - ago)), TURN_MS * at
            last[number] = end + TURN_MS
            scene.wait(lock, now, begin + 0.5, end + 0.2, enter, kind=WaitKind.CONTENTION)
            scene.hold(
                *(lock, now, begin + 0.4, end),
                site=site,
                stack=leave,
                waiters=1,
                release_thread=giver or before,
            )
            scene.builder.add_counter(lock, now, acquires=2, contended=1)
            scene.builder.add_counter(
                lock, giver or before, hold_histogram=[0] * 23 + [1] + [0] * 8
            )
            scene.seen(now, scene.stack(("work", 41)), end + 1, end + 9, State.BLOCKED)

    def door(self) -> int:
        """Return the id of the lock that was made of the signals."""
        trace = with_signals(self.scene.trace())
        ids = [one.id for one in trace.locks.values() if one.type.endswith(MADE_BY_HAND)]
        assert len(ids) == 1
        return ids[0]


IN_ORDER = [at % 4 for at in range(60)]
LAST_COME = [0, 1, 2, *[3, 4] * 28, 2]


def test_a_turn_lasts_from_being_woken_until_waking_the_next_one() -> None:
    gates = Gates(IN_ORDER)
    trace = with_signals(gates.scene.trace())

    assert len(handed_over(gates.scene.trace())) == 59
    assert set(trace.waits["lock"].tolist()) == set(trace.holds["lock"].tolist()) == {gates.door()}
    assert set(trace.waits["kind"].tolist()) == {WaitKind.CONTENTION}
    turns = [[round(int(one[name]) / MS, 3) for name in BOUNDS] for one in trace.holds[1:]]
    assert turns == [[10 * at + 0.2, 10 * at + 10] for at in range(1, 59)]
    assert trace.holds["thread"].tolist() == [gates.threads[at % 4] for at in range(59)]


def test_the_first_turn_is_known_since_somebody_waits() -> None:
    gates = Gates(IN_ORDER)
    first = with_signals(gates.scene.trace()).holds[0]

    assert (first["start_ns"], first["end_ns"]) == (0.5 * MS, 10 * MS)


def test_the_code_that_has_the_turn_is_blamed_and_no_waiter() -> None:
    finding = Gates(IN_ORDER).scene.diagnosis().findings[0]

    assert finding.kind in {"serialised-by-lock", "held-across-io"}
    assert finding.lock is not None
    assert finding.lock.name == "Door"
    assert finding.lock.type == "one threading.Lock for each waiter"
    assert finding.victims[0].site is not None
    assert finding.victims[0].site.function == "Door.enter"
    culprit = finding.culprits[0]
    assert culprit.site is not None
    assert culprit.acquired is not None
    assert (culprit.site.function, culprit.site.line) == ("work", 41)
    assert (culprit.acquired.function, culprit.acquired.line) == ("work", 40)


def test_a_lock_that_goes_to_the_last_one_is_unfair() -> None:
    gates = Gates(LAST_COME, ago=1)
    trace = gates.scene
    early = trace.lock("threading.Lock", 18, "gate")
    waiter = trace.thread("early")
    trace.wait(early, waiter, 1, 570, gates.enter, kind=WaitKind.CONTENTION, outcome=Outcome.OPEN)
    trace.builder.add_counter(early, waiter, acquires=1)
    finding = trace.diagnosis().findings[0]

    assert finding.kind == "unfair-lock"
    assert finding.evidence["overtaken_share"] == pytest.approx(1.0, abs=0.05)
    assert "`Door`" in finding.summary


def test_signals_that_are_used_again_are_a_lock_if_the_order_changes() -> None:
    order = [0]
    for at in range(80):
        order.append((order[-1] + 1 + at % 3) % 4)

    assert Gates(order, again=True).door()


@pytest.mark.parametrize(
    "gates",
    [
        Gates(IN_ORDER, again=True),
        Gates(IN_ORDER, server=True),
        Gates(IN_ORDER[:15]),
    ],
    ids=["a ring", "a server", "too few"],
)
def test_what_is_no_turn_stays_a_signal(gates: Gates) -> None:
    trace = with_signals(gates.scene.trace())

    assert not len(trace.holds)
    assert set(trace.waits["kind"].tolist()) == {WaitKind.COORDINATION}


def test_two_locks_in_use_at_a_time_are_two() -> None:
    gates = Gates([0, 1] * 30, ago=1)
    other = Gates([0, 1] * 30, ago=1)
    assert gates.door() == other.door()  # each by itself is one

    both = Scene(700)
    threads = [both.thread(f"worker {k}") for k in range(4)]
    enter = both.stack(("Door.enter", 20), ("work", 40))
    leave = both.stack(("Door.leave", 30), ("work", 42))
    for at in range(1, 60):
        for door in (0, 2):
            now, before = threads[door + at % 2], threads[door + (at - 1) % 2]
            lock = both.lock("threading.Lock", 18, "gate")
            begin, end = 10 * at - 9 + door, 10 * at + door
            both.wait(lock, now, begin + 0.5, end + 0.2, enter, kind=WaitKind.CONTENTION)
            both.hold(lock, now, begin, end, stack=leave, waiters=1, release_thread=before)
            both.builder.add_counter(lock, now, acquires=2, contended=1)
            both.builder.add_counter(lock, before, hold_histogram=[0] * 23 + [1] + [0] * 8)
    trace = with_signals(both.trace())

    doors = {
        frozenset(trace.holds["thread"][trace.holds["lock"] == lock].tolist())
        for lock in set(trace.holds["lock"].tolist())
    }
    assert doors == {frozenset(threads[:2]), frozenset(threads[2:])}
