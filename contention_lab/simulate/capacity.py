"""How many threads may have a lock at a time: one, or as many as a semaphore has permits.

A trace does not say with how many permits a semaphore was made. Where somebody waited, all were
out: the most that were out at a time are all there are. One that nobody waited for, or whose
permits others give back than took them (a signal), limits nothing that could be told; nor does
one of tasks, which are simulated as the thread they run on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.permits import permits
from contention_lab.trace import HoldFlag, WaitKind

if TYPE_CHECKING:
    from contention_lab.trace import Trace

NOT_EXCLUSIVE: Final = (*("Semaphore", "Event", "Barrier", "Queue"), "Thread")
"""Types that several threads may hold at once, or nobody holds, or that say whether a thread has
ended (`threading.Lock in Thread`)."""
GIVEN_BACK: Final = 0.9
"""Share of a semaphore's permits that the thread gave back which took them, from which on it limits
how many threads do something at a time."""


def is_exclusive(lock_type: str) -> bool:
    """Tell whether only one thread at a time can hold a lock of a type."""
    return not any(name in lock_type for name in NOT_EXCLUSIVE)


def is_semaphore(lock_type: str) -> bool:
    """Tell whether a type's locks have permits."""
    return "Semaphore" in lock_type


def capacity(trace: Trace, lock: int) -> int:
    """Return how many threads may have a lock at a time; 0 where that cannot be told.

    Parameters
    ----------
    trace
        The recording.
    lock
        The lock's id.
    """
    lock_type = trace.lock(lock).type
    if is_exclusive(lock_type):
        return 1
    return _capacities(trace).get(lock, 0) if is_semaphore(lock_type) else 0


def _capacities(trace: Trace) -> dict[int, int]:
    found = trace.derived.get("capacities")
    if found is None:
        ids = [id_ for id_, lock in trace.locks.items() if is_semaphore(lock.type)]
        found = {id_: most for id_ in ids if (most := _permits(trace, id_))}
        trace.derived["capacities"] = found
    return found


def _permits(trace: Trace, lock: int) -> int:
    waits, holds = trace.wait_columns, trace.hold_columns
    waited = (waits["lock"] == lock) & (waits["kind"] == WaitKind.CONTENTION)
    mine = holds["lock"] == lock
    given_back = (holds["flags"][mine] & int(HoldFlag.HANDED_OFF)) == 0
    if not waited.any() or not mine.any() or float(np.mean(given_back)) < GIVEN_BACK:
        return 0
    if any(trace.thread(id_).is_task for id_ in np.unique(holds["thread"][mine]).tolist()):
        return 0  # tasks take turns anyway, as the thread that they run on
    return permits(trace, [lock]).most
