"""Chains: what the holder of a lock itself waited for, and who held that, to the root.

While a thread waits for a second lock under a first one, whoever waits for the first one waits for
the holder of the second. So part of the waiting for a lock is passed on: of the time its waiters
lost, the part during which its holder waited for another lock that somebody held. That one may
have waited in turn. What arrives at a lock stays there, but for what is passed on again. Semaphores
are left out: of several holders none is the one that is waited for.

Waiting is counted as elsewhere: a moment counts as often as threads waited for the first lock then.
Which locks were taken under which is asked of the lock orders first, where the trace has them: a
program that never holds two locks costs nothing here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.intervals import hold_spans, lock_waits
from contention_lab.analysis.overlap import on_one_line

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy.typing as npt

    from contention_lab.analysis.intervals import Spans
    from contention_lab.trace import Trace

    Integers = npt.NDArray[np.int64]
    Ids = npt.NDArray[np.uint32]

LONGEST: Final = 8
"""Steps followed at most: a chain that goes on is a ring, see `wait_for.py`."""
MOST_WAITS: Final = 200_000
"""Waits looked at; of more, those in the middle of the recording, which are like the others."""
WITHOUT_ORDERS: Final = 100_000
"""Waits up to which a trace without lock orders is searched for locks within locks."""
MOSTLY: Final = 0.5
"""Share of what arrives at a lock that must be passed on to one other lock for the chain to go on:
below it, the code that holds the lock is more to blame than what it waits for."""


@dataclass(frozen=True, slots=True)
class ChainStep:
    """The waiting for a lock was passed on to another one.

    Attributes
    ----------
    wait
        The longest wait by which it was, a position in `trace.waits`: that of the one's holder.
    hold
        The hold of the other lock that it was for, a position in `trace.holds`.
    lock
        The other lock.
    ns
        Waiting for the first lock of the chain that arrives here.
    share
        Of the waiting for the first lock.
    """

    wait: int
    hold: int
    lock: int
    ns: int
    share: float


def chain(
    trace: Trace, locks: Collection[int], spans: tuple[Spans, Spans] | None = None
) -> tuple[ChainStep, ...]:
    """Return the path from locks to the root of the waiting for them.

    Parameters
    ----------
    trace
        A trace.
    locks
        Ids of locks that count as one.
    spans
        `lock_waits` and `hold_spans` of the trace, if the caller has them.

    Returns
    -------
    tuple of ChainStep
        Empty if the waiting for them is mostly the doing of the code that holds them. Each step
        leads to the lock to which most is passed on; the last one is the root.
    """
    ours = np.fromiter(locks, dtype=np.int64)
    if any("Semaphore" in trace.lock(lock).type for lock in locks):
        return ()
    inner = _taken_under(trace, ours)
    inner = inner[["Semaphore" not in trace.lock(lock).type for lock in inner.tolist()]]
    if not len(inner):
        return ()
    waits, holds = spans or (lock_waits(trace), hold_spans(trace))
    among = np.concatenate([ours, inner])
    waits = waits.where(np.isin(waits.lock, among))
    holds = holds.where(np.isin(holds.lock, among))
    if len(waits.index) > MOST_WAITS:
        waits, holds = _middle(waits, holds)
    weigh = _Weight(waits.where(np.isin(waits.lock, ours)))
    held = holds.where(np.isin(holds.lock, ours))
    arrived = weigh.total_ns
    steps: list[ChainStep] = []
    been = {*ours.tolist()}
    by_thread, by_lock = _Index(waits, waits.thread), _Index(holds, holds.lock)
    while arrived and len(steps) < LONGEST:
        nested = by_thread.within(held, held.thread)
        nested = nested.where(~np.isin(nested.lock, [*been]))
        held = by_lock.within(nested, nested.lock)
        ns = weigh.between(held.start_ns, held.end_ns)
        found, which = np.unique(held.lock, return_inverse=True)
        passed = np.bincount(which, weights=ns, minlength=len(found))
        if not len(found) or passed.max() < MOSTLY * arrived:
            break
        most = int(passed.argmax())
        chosen = held.lock == found[most]
        held, ns, arrived = held.where(chosen), ns[chosen], int(passed[most])
        longest = int(ns.argmax())
        wait = _at(nested, held.start_ns[longest], int(found[most]))
        hold, lock = int(held.index[longest]), int(found[most])
        steps.append(ChainStep(wait, hold, lock, arrived, arrived / weigh.total_ns))
        been.add(int(found[most]))
    return tuple(steps)


def _middle(waits: Spans, holds: Spans) -> tuple[Spans, Spans]:
    """Return what goes on in the middle of a long recording."""
    starts = np.sort(waits.start_ns)
    first, last = ((len(starts) + sign * MOST_WAITS) // 2 for sign in (-1, 1))
    begin, end = starts[first], starts[last - 1]
    waits = waits.where((waits.start_ns >= begin) & (waits.start_ns <= end))
    return waits, holds.where((holds.end_ns >= begin) & (holds.start_ns <= end))


def _taken_under(trace: Trace, locks: Integers) -> Integers:
    """Return the locks that were taken while some of these were held, and under those in turn."""
    orders = trace.orders
    if not len(orders):
        others = np.unique(trace.wait_columns["lock"]).astype(np.int64)
        return others if len(trace.wait_columns) <= WITHOUT_ORDERS else others[:0]
    reached = locks
    for _ in range(LONGEST):
        taken = orders["lock"][np.isin(orders["held"], reached)].astype(np.int64)
        more = np.union1d(reached, taken)
        if len(more) == len(reached):
            break
        reached = more
    return np.setdiff1d(reached, locks)


def _at(waits: Spans, time_ns: int, lock: int) -> int:
    """Return the wait for a lock that goes on at a moment."""
    there = (waits.lock == lock) & (waits.start_ns <= time_ns) & (waits.end_ns > time_ns)
    return int(waits.index[np.flatnonzero(there)[0]])


class _Weight:
    """How much waiting some waits amount to between two moments."""

    def __init__(self, waits: Spans) -> None:
        self._start, self._end = np.sort(waits.start_ns), np.sort(waits.end_ns)
        self._starts = np.concatenate([[0], np.cumsum(self._start)])
        self._ends = np.concatenate([[0], np.cumsum(self._end)])
        self.total_ns = int(waits.length_ns.sum())

    def between(self, start: Integers, end: Integers) -> Integers:
        """Return for each span the waiting in it."""
        return self._until(end) - self._until(start)

    def _until(self, time_ns: Integers) -> Integers:
        begun = np.searchsorted(self._start, time_ns)
        over = np.searchsorted(self._end, time_ns)
        waited: Integers = (begun * time_ns - self._starts[begun]) - (
            over * time_ns - self._ends[over]
        )
        return waited


class _Index:
    """Spans that belong to something and do not overlap others of it, findable by time."""

    def __init__(self, spans: Spans, owner: Ids) -> None:
        self._owners = np.unique(owner)
        place = np.searchsorted(self._owners, owner)
        order = np.lexsort((spans.start_ns, place))
        self._spans, self._place = spans.where(order), place[order]

    def within(self, outer: Spans, owner: Ids) -> Spans:
        """Return the parts of the spans that lie in outer ones of the same owner."""
        mine = np.isin(owner, self._owners)
        outer, place = outer.where(mine), np.searchsorted(self._owners, owner[mine])
        spans = self._spans
        start, end, begin, until = on_one_line(
            (self._place, spans.start_ns),
            (self._place, spans.end_ns),
            (place, outer.start_ns),
            (place, outer.end_ns),
        )
        first = np.searchsorted(np.maximum.accumulate(end), begin, side="right")
        last = np.searchsorted(start, until, side="left")
        count = np.maximum(0, last - first)
        which = np.repeat(np.arange(len(count)), count)
        step = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
        inner = spans.where(first[which] + step)
        clipped = type(spans)(
            inner.index,
            inner.lock,
            inner.thread,
            np.maximum(inner.start_ns, outer.start_ns[which]),
            np.minimum(inner.end_ns, outer.end_ns[which]),
        )
        return clipped.where(clipped.end_ns > clipped.start_ns)
