"""Wake-ups that found something to do, and those that did not: by what the woken thread does next.

A wake-up was useless if the thread waited on the same thing again without having let go of the
lock in between: its condition was still false. An event is waited for without a lock. There it was
useless if, before it waited for the same event again, the thread woke nobody and waited for nothing
but locks, and did next to nothing: it ran for no longer than a look takes, or waited again before
the last of those woken with it had even begun to run. Threads that use another thing to wait for at
most of their wake-ups (they put a result into a queue, arrive at a barrier) are believed to do so
because they found something.

A woken thread learns the number of its wake-up when it runs. Where one was made after the other
before any of the woken ran, all of them bear the number of the last; the numbers that nobody bears
tell how many there were.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.coordination import Purpose
from contention_lab.analysis.intervals import coordination_waits, lock_waits
from contention_lab.analysis.windows import Windows
from contention_lab.trace import Outcome, WaitFlag

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy.typing as npt

    from contention_lab.analysis.coordination import CoordinationCase
    from contention_lab.trace import Trace

    Integers: TypeAlias = npt.NDArray[np.int64]

LOOK: Final = 200
"""How many acquires of a free lock a look takes at most: it takes two or three, one or two calls
around each, and the recorder's part."""


@dataclass(frozen=True, slots=True, eq=False)
class Wakeups:
    """The wake-ups of one case of coordination.

    Attributes
    ----------
    useless
        Which waits of the case ended in a useless wake-up.
    woken_together
        For each wait, how many were woken with it, itself included; 0 where nobody was. Of several
        wake-ups that cannot be told apart, the mean, rounded up.
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
    if (size > 2).any():
        together = -(-together // _made(trace, case))
    order = np.lexsort((case.start_ns, case.thread))
    following = np.full(len(order), -1)
    same = case.thread[order[1:]] == case.thread[order[:-1]]
    following[order[:-1][same]] = order[1:][same]
    has_next = following >= 0
    again = np.zeros(len(order), dtype=np.bool_)
    again[has_next] = case.flags[following[has_next]] & int(WaitFlag.AGAIN) != 0
    next_start = np.full(len(order), np.iinfo(np.int64).max)
    next_start[has_next] = case.start_ns[following[has_next]]
    useless = woken & has_next & again
    if case.purpose is Purpose.EVENT:
        herd = woken & has_next & (together > 2)
        herd[herd] = _did_nothing(trace, case, np.flatnonzero(herd), next_start)
        useless |= herd
    first_end = np.full(len(size), np.iinfo(np.int64).max)
    np.minimum.at(first_end, case.batch, case.end_ns)
    over = np.zeros(len(size), dtype=np.int64)
    herd = useless & (together > 2)
    np.maximum.at(over, case.batch[herd], next_start[herd])
    storms = Windows.union(first_end[over > 0], over[over > 0])
    batches = np.unique(case.batch[together > 2])
    return Wakeups(useless, together, storms, len(batches))


def _made(trace: Trace, case: CoordinationCase) -> Integers:
    """Return for each wait how many wake-ups were made under its number: since the one before."""
    every = coordination_waits(trace)
    mine = np.isin(every.lock, [*case.locks])
    columns = trace.wait_columns
    known = columns["outcome"][every.index[mine]] == Outcome.ACQUIRED
    number = np.where(known, columns["spins"][every.index[mine]], 0).astype(np.int64)
    used = np.unique(every.lock[mine].astype(np.int64) << 32 | number)
    since = np.diff(used, prepend=used[:1])
    # The first one is not known to have others before it.
    since[(used & 0xFFFFFFFF == 0) | (np.diff(used >> 32, prepend=-1) != 0)] = 1
    first = np.append(False, used[:-1] & 0xFFFFFFFF == 0)  # after those without a number
    since[first] = 1
    at = np.searchsorted(used, case.lock_id.astype(np.int64) << 32 | case.wake)
    made: Integers = np.where(case.wake == 0, 1, since[np.minimum(at, len(used) - 1)])
    return np.maximum(made, 1)


def _did_nothing(
    trace: Trace, case: CoordinationCase, chosen: npt.NDArray[np.intp], next_start: Integers
) -> npt.NDArray[np.bool_]:
    """Tell for the chosen waits whether the thread did nothing before it waited again."""
    cost_ns = trace.meta.get("acquire_cost_ns")
    look_ns = LOOK * float(cost_ns) if isinstance(cost_ns, int | float) else 0.0
    last_end = np.zeros(int(case.batch.max(initial=0)) + 1, dtype=np.int64)
    np.maximum.at(last_end, case.batch, case.end_ns)
    waits = trace.wait_columns
    every = coordination_waits(trace)
    ended = waits["outcome"][every.index] == Outcome.ACQUIRED
    waker = np.where(ended, waits["holder"][every.index], 0)
    elsewhere = ~np.isin(every.lock, [*case.locks])
    locks, gil = lock_waits(trace), trace.gil_waits
    result = np.zeros(len(chosen), dtype=np.bool_)
    for thread in np.unique(case.thread[chosen]).tolist():
        if _uses_others(trace, case, thread):
            continue
        mine = case.thread[chosen] == thread
        at = chosen[mine]
        begin = _ends(trace, case, at)
        by_begin = np.argsort(begin, kind="stable")
        at, begin = at[by_begin], begin[by_begin]
        until = next_start[at]
        # A wait that this thread ended goes on until the other one runs, a little later.
        acted = np.searchsorted(begin, every.end_ns[waker == thread], side="right") - 1
        own = elsewhere & (every.thread == thread)
        waited = np.searchsorted(begin, every.start_ns[own], side="right") - 1
        nothing = np.ones(len(at), dtype=np.bool_)
        for found in (acted, waited[every.start_ns[own] <= until[waited]]):
            nothing[found[found >= 0]] = False
        of_lock, of_gil = locks.thread == thread, gil["thread"] == thread
        away = Windows.union(
            np.concatenate([locks.start_ns[of_lock], gil["start_ns"][of_gil].astype(np.int64)]),
            np.concatenate([locks.end_ns[of_lock], gil["end_ns"][of_gil].astype(np.int64)]),
        )
        ran = until - begin - away.covered_ns(begin, until)
        nothing &= (ran <= look_ns) | (until <= last_end[case.batch[at]])
        back = np.empty(len(at), dtype=np.intp)
        back[by_begin] = np.arange(len(at))
        result[mine] = nothing[back]
    return result


def _ends(trace: Trace, case: CoordinationCase, at: npt.NDArray[np.intp]) -> Integers:
    """Return when threads ran again after waits: with the GIL."""
    ends: Integers = trace.wait_columns["end_ns"][case.index[at]].astype(np.int64)
    return np.maximum(case.end_ns[at], ends)


def _uses_others(trace: Trace, case: CoordinationCase, thread: int) -> bool:
    """Tell whether a thread uses another thing to wait for at half of its wake-ups or more."""
    counters = trace.counters
    mine = counters[(counters["thread"] == thread) & ~np.isin(counters["lock"], [*case.locks])]
    others = [
        int(acquires)
        for lock, acquires in zip(mine["lock"].tolist(), mine["acquires"].tolist(), strict=True)
        if not trace.lock(lock).type.endswith(_PLAIN)
    ]
    return max(others, default=0) >= int(np.count_nonzero(case.thread == thread)) / 2


_PLAIN: Final = ("Lock", "Mutex")
"""How the types of locks end that only guard something."""
