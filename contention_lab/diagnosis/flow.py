"""Which way items go: do waiters wait for an item, or for room?

A queue's methods say. Of a buffer that the program has made of conditions nothing does but its
course: a consumer is still at work when the last producer has ended, since it has its last items to
work on, and a producer ends first. Where others come in and leave while it is waited, as readers do
while a writer waits, nothing goes either way.

What tells is how long the one side outlives the other in terms of the work that there is between
two wake-ups. How long a wait lasts tells nothing: with many who wait, each waits for many items.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from contention_lab.analysis.coordination import Purpose, is_of_library
from contention_lab.diagnosis.coordination_parties import waking_stacks
from contention_lab.diagnosis.thresholds import NEARLY_ALL_WAITING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from contention_lab.analysis.coordination import CoordinationCase
    from contention_lab.diagnosis.awaited import Awaited


class Flow(Enum):
    """What waiters wait for."""

    FOR_ITEM = "an item"
    FOR_ROOM = "room"
    UNKNOWN = "not known"


def flow(awaited: Awaited) -> Flow:
    """Tell what the waiters of a case wait for.

    Of a condition it is room if those who end the waits outlive the waiters, by half of the time
    or more that one of them usually takes from one wake-up to the next: a consumer has the items
    that are left still to work on, and at least the one it has begun. If the waiters outlive them,
    or all end as one, it is an item. A thread that waits for good, or for others to end, has ended;
    those who make up the last tenth of the waiting are left out, as a main thread that puts the
    mark of the end behind the items. Where those who end the waits do not end, as the main thread
    does not unless it joins others, it is not known; nor where a tenth or more is ended by threads
    that wait for the same, or only a library's own threads end it, under no code of the program.
    """
    case = awaited.case
    if case.purpose in (Purpose.ITEM, Purpose.TASK):
        return Flow.FOR_ITEM
    if case.purpose is Purpose.ROOM:
        return Flow.FOR_ROOM
    if (
        not case.wakers
        or case.self_ended_share >= 1.0 - NEARLY_ALL_WAITING
        or _is_woken_by_library(awaited)
    ):
        return Flow.UNKNOWN
    waiters, wakers = (
        max(_end(awaited, one) for one in _most(side)) for side in (case.waiters, case.wakers)
    )
    if wakers > awaited.trace.duration_ns:
        return Flow.UNKNOWN
    return Flow.FOR_ROOM if wakers - waiters >= _usual_interval_ns(case) / 2 else Flow.FOR_ITEM


def _most(weights: Mapping[int, int]) -> Iterator[int]:
    """Yield those with the most, until they have most of it."""
    left = sum(weights.values()) * NEARLY_ALL_WAITING
    for one, weight in weights.items():
        if left <= 0:
            return
        yield one
        left -= weight


def _usual_interval_ns(case: CoordinationCase) -> float:
    """Return how long it usually is from one wake-up to the next by the same thread.

    Of that only what somebody waits counts, and half of it all is in intervals as long or longer:
    two wake-ups may follow one another at once. Where nobody woke others twice, how long a wait
    usually lasts.
    """
    through = np.flatnonzero(case.last == np.arange(len(case.last)))
    # Waits are in the order of their end.
    first = through[np.unique(case.batch[through], return_index=True)[1]]
    time, waker = case.end_ns[first], case.waker[first]
    intervals = [np.zeros(0, dtype=np.int64)]
    for one in np.unique(waker[waker != 0]).tolist():
        mine = np.sort(time[waker == one])
        intervals.append(case.windows.covered_ns(mine[:-1], mine[1:]))
    ordered = np.sort(np.concatenate(intervals))
    if not ordered.any():
        return float(np.median(case.end_ns - case.start_ns))
    so_far = np.cumsum(ordered)
    return float(ordered[np.searchsorted(so_far, so_far[-1] / 2)])


def _is_woken_by_library(awaited: Awaited) -> bool:
    stacks = [awaited.trace.stack(stack) for stack in waking_stacks(awaited.case) if stack]
    return bool(stacks) and all(map(is_of_library, stacks))


def _end(awaited: Awaited, thread: int) -> int:
    """Return when a thread ended, or began to wait for an end after all it did here."""
    case, trace = awaited.case, awaited.trace
    woke_ns = int(case.end_ns[case.ender == thread].max(initial=0))
    waited_ns = int(case.start_ns[case.thread == thread].max(initial=0))
    ended = trace.thread(thread).end_ns or trace.duration_ns + 1
    return min(ended, awaited.activity.leaves_after(thread, max(woke_ns, waited_ns)))
