"""Locks that the first of several takes and the last of them gives back.

Such a lock is taken under another one, the guard of the number of those inside, and what looks like
one long hold is many threads coming and going: how often the guard was passed says how many. Two
signs tell it from a lock that is simply held for long: it is released by another thread than took
it; or a thread that holds it passes the guard at the very line again at which it passed it to take
the lock, which would hang if it took the lock there every time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.intervals import hold_spans, lock_waits
from contention_lab.analysis.sites import user_frame
from contention_lab.analysis.sums import summed
from contention_lab.analysis.windows import Windows
from contention_lab.trace import HoldFlag, Outcome

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from contention_lab.trace import Records, Trace


OFTEN: Final = 5
"""Visits for each permit taken from which a holder has come in again while it had the permit."""


@dataclass(frozen=True, slots=True, eq=False)
class Switched:
    """One such lock, and those who wait for it.

    Attributes
    ----------
    lock, guard
        Ids.
    readers
        Threads that pass the guard and do not wait for the lock.
    passages
        How often they passed it: once to come in, once to go out.
    entry
        The frame that takes the guard to come in, by id.
    holds
        How many holds of the lock were recorded.
    waited
        When somebody waited for the lock.
    covered_share
        Share of that time for which it was held.
    satisfied
        How many waits got it.
    holder_stacks
        What holders were seen at when waits began, weighted by the waits.
    """

    lock: int
    guard: int
    readers: tuple[int, ...]
    passages: int
    entry: int
    holds: int
    waited: Windows
    covered_share: float
    satisfied: int
    holder_stacks: dict[int, float]


def switched(trace: Trace, locks: Collection[int]) -> Iterator[Switched]:
    """Yield those of some locks that are switched by the first and the last.

    Parameters
    ----------
    trace
        A trace.
    locks
        Ids.
    """
    orders, waits, holds, counters = (
        trace.orders,
        lock_waits(trace),
        hold_spans(trace),
        trace.counters,
    )
    for lock in sorted(locks):
        taken = _taken(trace, lock)
        if not len(taken):
            continue
        mine, held = waits.where(waits.lock == lock), holds.where(holds.lock == lock)
        if not len(mine.index) or not len(held.index):
            continue
        guards = np.unique(taken["held"][~np.isin(taken["thread"], mine.thread)]).tolist()
        flags = trace.hold_columns["flags"][held.index]
        handed = bool(np.any(flags & int(HoldFlag.HANDED_OFF)))
        for guard in guards:
            sites = np.unique(taken["held_site"][taken["held"] == guard])
            if not (
                handed
                or _passes_again(trace, orders, lock, guard, sites.tolist())
                or _passes_often(trace, lock, guard)
            ):
                continue
            of_guard = counters[
                (counters["lock"] == guard) & ~np.isin(counters["thread"], mine.thread)
            ]
            waited = Windows.union(mine.start_ns, mine.end_ns)
            inside = Windows.union(held.start_ns, held.end_ns)
            covered = int(inside.covered_ns(waited.start_ns, waited.end_ns).sum())
            stacks = trace.wait_columns["holder_stack"][mine.index]
            seen = summed(stacks[stacks != 0], mine.length_ns[stacks != 0])
            outcome = trace.wait_columns["outcome"][mine.index]
            yield Switched(
                lock=lock,
                guard=guard,
                readers=tuple(np.unique(of_guard["thread"]).tolist()),
                passages=int(of_guard["acquires"].sum()),
                entry=int(sites[0]),
                holds=len(held.index),
                waited=waited,
                covered_share=covered / waited.total_ns if waited.total_ns else 0.0,
                satisfied=int(np.count_nonzero(outcome == Outcome.ACQUIRED)),
                holder_stacks=seen,
            )


def _taken(trace: Trace, lock: int) -> Records:
    """Return the records of a lock, or a semaphore's one permit, being taken under another lock.

    Of a semaphore it is its own inner lock that is recorded, when a permit is given back, too.
    """
    outer, number, gives = trace.lock(lock), lock, []
    if "Semaphore" in outer.type:
        inner = [
            one.id
            for one in trace.locks.values()
            if one.site == outer.site and one.id < lock and one.type.endswith("Semaphore")
        ]
        number = max(inner, default=lock)
        gives = [
            stack
            for stack, frames in trace.stacks.items()
            if any(_is_release(trace, frame) for frame in frames)
        ]
    mine = trace.orders["lock"] == number
    taken: Records = trace.orders[mine & ~np.isin(trace.orders["stack"], gives)]
    return taken


def _passes_often(trace: Trace, lock: int, guard: int) -> bool:
    """Tell whether those who took a semaphore's permit passed the guard many times for each.

    What is passed while one has a permit is not recorded: in and out once for each would be twice.
    """
    if "Semaphore" not in trace.lock(lock).type:
        return False
    counters = trace.counters
    took = counters[(counters["lock"] == lock) & (counters["acquires"] > 0)]
    holds = trace.hold_columns
    holders = np.unique(holds["thread"][holds["lock"] == lock])
    passed = counters[(counters["lock"] == guard) & np.isin(counters["thread"], holders)]
    taken = int(took["acquires"][np.isin(took["thread"], holders)].sum())
    return int(passed["acquires"].sum()) >= 2 * OFTEN * max(1, taken)


def _is_release(trace: Trace, number: int) -> bool:
    frame = trace.frames.get(number)
    return frame is not None and frame.function.endswith("Semaphore.release")


def _passes_again(
    trace: Trace, orders: Records, lock: int, guard: int, sites: Collection[int]
) -> bool:
    """Tell whether a holder of the lock passed the guard where it passes it to take the lock."""
    entries = {trace.frames.get(site) for site in sites}
    under = orders[(orders["lock"] == guard) & (orders["held"] == lock)]
    return any(
        user_frame(trace.stack(stack)) in entries for stack in np.unique(under["stack"]).tolist()
    )
