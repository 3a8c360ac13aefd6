"""Wake-ups that found something to do, and those that did not.

A wake-up was useless if the thread waited on the same thing again without having let go of the
lock in between: its condition was still false. Where that cannot be seen, since an event is waited
for without a lock, it was useless if it was one of several woken together, woke nobody itself, and
waited again before the last of the others had even begun to run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contention_lab.analysis.coordination import Purpose
from contention_lab.analysis.windows import Windows
from contention_lab.trace import Outcome, WaitFlag

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy.typing as npt

    from contention_lab.analysis.coordination import CoordinationCase
    from contention_lab.trace import Trace

    Integers: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Wakeups:
    """The wake-ups of one case of coordination.

    Attributes
    ----------
    useless
        Which waits of the case ended in a useless wake-up.
    woken_together
        For each wait, how many were woken with it, itself included; 0 where nobody was.
    storms
        From the first of several to wake until the last that was woken in vain waits again.
    batches
        How often several were woken together.
    """

    useless: npt.NDArray[np.bool_]
    woken_together: npt.NDArray[np.intp]
    storms: Windows
    batches: int


def wakeups(trace: Trace, case: CoordinationCase) -> Wakeups:
    """Tell the useful wake-ups of a case from the useless ones."""
    woken = case.outcome == Outcome.ACQUIRED
    size = np.bincount(case.batch[woken], minlength=int(case.batch.max(initial=0)) + 1)
    together = np.where(woken, size[case.batch], 0)
    order = np.lexsort((case.start_ns, case.thread))
    following = np.full(len(order), -1)
    same = case.thread[order[1:]] == case.thread[order[:-1]]
    following[order[:-1][same]] = order[1:][same]
    has_next = following >= 0
    again = np.zeros(len(order), dtype=np.bool_)
    again[has_next] = case.flags[following[has_next]] & int(WaitFlag.AGAIN) != 0
    next_start = np.full(len(order), np.iinfo(np.int64).max)
    next_start[has_next] = case.start_ns[following[has_next]]
    last_end = np.zeros(int(case.batch.max(initial=0)) + 1, dtype=np.int64)
    np.maximum.at(last_end, case.batch, case.end_ns)
    hasty = (together > 2) & (next_start <= last_end[case.batch])
    hasty &= case.purpose is Purpose.EVENT
    hasty[hasty] = ~_woke_somebody(trace, case, np.flatnonzero(hasty), next_start)
    useless = woken & has_next & (again | hasty)
    first_end = np.full(len(last_end), np.iinfo(np.int64).max)
    np.minimum.at(first_end, case.batch, case.end_ns)
    over = np.zeros(len(last_end), dtype=np.int64)
    herd = useless & (together > 2)
    np.maximum.at(over, case.batch[herd], next_start[herd])
    storms = Windows.union(first_end[over > 0], over[over > 0])
    return Wakeups(useless, together, storms, int(np.count_nonzero(size > 2)))


def _woke_somebody(
    trace: Trace, case: CoordinationCase, chosen: npt.NDArray[np.intp], next_start: Integers
) -> npt.NDArray[np.bool_]:
    """Tell for the chosen waits whether the thread woke another one before it waited again."""
    if not len(chosen):
        return np.zeros(0, dtype=np.bool_)
    waits = trace.wait_columns
    ended = waits["holder"] != 0
    ended &= (waits["kind"] == 1) & (waits["outcome"] == Outcome.ACQUIRED)
    by, when = waits["holder"][ended].astype(np.int64), waits["end_ns"][ended].astype(np.int64)
    order = np.lexsort((when, by))
    by, when = by[order], when[order]
    found = np.zeros(len(chosen), dtype=np.bool_)
    for thread in np.unique(case.thread[chosen]).tolist():
        mine = case.thread[chosen] == thread
        first, last = np.searchsorted(by, (thread, thread + 1))
        times = when[first:last]
        begin, end = case.end_ns[chosen][mine], next_start[chosen][mine]
        found[mine] = np.searchsorted(times, begin) < np.searchsorted(times, end, side="right")
    return found
