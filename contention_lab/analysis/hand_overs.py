"""Locks used as signals: one thread waits to acquire them, another one that never does releases.

Nobody holds such a lock: a semaphore made with 0 permits, or a lock that its maker acquires once to
arm it, is released to say that something has been done. Waiting for it is waiting for others to do
something, and its recorded "holds" last from one such moment to the next. The trace that is
returned says so; everything that is made of it then sees coordination.

It decides by who acquires and who releases alone, never by how long anything took.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.analysis.distinct import distinct
from contention_lab.analysis.intervals import hold_spans
from contention_lab.analysis.overlap import on_one_line
from contention_lab.analysis.passed_turns import WakeUps, with_turns
from contention_lab.analysis.processes import SHARED
from contention_lab.trace import HoldFlag, Outcome, WaitKind

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy.typing as npt

    from contention_lab.trace import Records, Trace

    Integers = npt.NDArray[np.int64]

MOST_ARMING: Final = 1
"""Acquires by threads that release: whoever signals may have to take the lock first, once."""
LEAST_OTHERS: Final = 0.9
"""Share of the releases by threads that did not acquire it; a thread that takes one and finds it
needs none gives it back itself."""

_KEPT: Final = ("lock", "thread", "acquires", "failed_tries", "timed_out", "interrupted")
"""What the counters of a signal still say: the rest is about waiting for a lock, and holding it."""


def handed_over(trace: Trace) -> frozenset[int]:
    """Return the ids of locks and semaphores that are signals, as far as holds were timed.

    One is a signal if nearly all of its releases are by threads that have not acquired it, but for
    one acquire that arms it. Where the thread that releases was started after the lock had been
    acquired it may be that it was given what it releases, for as long as it lives: if that is so of
    half of the holds of all that were made alike, it is none. A lock that several processes share
    is none either: those who acquire it may be elsewhere.
    """
    counters = trace.counters
    locks, which = distinct(counters["lock"])
    released = counters["hold_histogram"].sum(axis=1).astype(np.float64)
    own = np.minimum(released, counters["acquires"].astype(np.float64))
    releases, own_releases = (
        np.bincount(which, weights=values, minlength=len(locks)) for values in (released, own)
    )
    others = releases - np.where(own_releases > MOST_ARMING, own_releases, 0.0)
    found = (releases > 0) & (others >= LEAST_OTHERS * releases)
    suspects = [locks[at][0] for at in np.flatnonzero(found).tolist()]
    suspects = [one for one in suspects if not trace.lock(one).type.startswith(SHARED)]
    if not suspects:
        return frozenset()
    holds, columns = hold_spans(trace), trace.hold_columns
    ended = columns["flags"] & int(HoldFlag.OPEN) == 0
    by_others = ended & (columns["release_thread"] != columns["thread"])
    holds = holds.where(by_others & np.isin(holds.lock, suspects))
    threads, at = distinct(columns["release_thread"][holds.index])
    began = np.array([trace.thread(thread).start_ns for (thread,) in threads], dtype=np.float64)
    given = began[at] > holds.start_ns if len(at) else np.zeros(0, dtype=np.bool_)
    kinds: dict[tuple[Any, ...], int] = {}
    kind_of = {one: kinds.setdefault(_made(trace, one), len(kinds)) for one in suspects}
    held, which = distinct(holds.lock)
    kind = np.array([kind_of[lock] for (lock,) in held], dtype=np.intp)[which]
    handed, count = (np.bincount(part, minlength=len(kinds)) for part in (kind[given], kind))
    is_signal = 2 * handed < count
    signals = {lock for (lock,) in held if is_signal[kind_of[lock]]}
    return frozenset(signals | _never_given(trace, signals, [lock for (lock,) in locks]))


def _made(trace: Trace, number: int) -> tuple[Any, ...]:
    """Return by what locks are made alike."""
    lock = trace.lock(number)
    return lock.type, lock.label, lock.site


def _never_given(trace: Trace, signals: set[int], locks: list[int]) -> set[int]:
    """Return the locks made like signals, and like these only, that nobody has released yet."""
    alike = {_made(trace, one) for one in signals}
    others = {one for one in locks if one not in signals and _made(trace, one) in alike}
    counters = trace.counters
    mine = np.isin(counters["lock"], [*others])
    released = counters["hold_histogram"][mine].sum(axis=1) > 0
    freed = {*counters["lock"][mine][released].tolist()}
    mixed = {_made(trace, one) for one in freed}
    return {one for one in others - freed if _made(trace, one) not in mixed}


def with_signals(trace: Trace) -> Trace:
    """Return the trace with waits for signals as coordination, and without their holds.

    Each wait that got its signal is ended by the thread whose release came last before. Failed
    tries stay what they are. Locks that are made of signals are locks (see `passed_turns.py`).
    """
    locks = handed_over(trace)
    if not locks:
        return trace
    signalled, mine = as_coordination(trace, locks)
    (waits,) = signalled.wait_chunks
    return with_turns(signalled, _woken(trace, waits, mine, locks))


def as_coordination(trace: Trace, locks: Collection[int]) -> tuple[Trace, npt.NDArray[np.intp]]:
    """Take waits for certain locks for waits for something else, that nobody is known to end.

    Parameters
    ----------
    trace
        The trace.
    locks
        Ids of the locks. Failed tries at them stay what they are.

    Returns
    -------
    tuple
        The trace with these waits as coordination and without holds of these locks, and the
        positions of the waits.
    """
    ids = np.array(sorted(locks), dtype=np.uint32)
    waits, holds, counters = trace.waits.copy(), trace.holds, trace.counters.copy()
    mine = np.flatnonzero(
        np.isin(waits["lock"], ids)
        & (waits["kind"] == WaitKind.CONTENTION)
        & (waits["outcome"] != Outcome.FAILED_TRY)
    )
    for name in ("holder", "holder_site", "holder_stack", "spins"):
        waits[name][mine] = 0
    waits["kind"][mine] = WaitKind.COORDINATION
    about = np.isin(counters["lock"], ids)
    for name in counters.dtype.names or ():
        if name not in _KEPT:
            counters[name][about] = 0
    changed = replace(
        trace,
        wait_chunks=(waits,),
        hold_chunks=((0, holds[~np.isin(holds["lock"], ids)]),),
        counter_chunks=(counters,),
    )
    return changed, mine


def _woken(
    trace: Trace, waits: Records, mine: npt.NDArray[np.intp], locks: Collection[int]
) -> WakeUps:
    """Set who ended waits: the thread whose release came last before, by recorded holds."""
    held = np.flatnonzero(np.isin(trace.holds["lock"], np.array(sorted(locks), dtype=np.uint32)))
    spans = hold_spans(trace).where(held)
    spans = spans.where((trace.holds["flags"][held] & int(HoldFlag.OPEN)) == 0)
    if not len(mine) or not len(spans.index):
        mine = mine[:0]
    lock = waits["lock"][mine].astype(np.int64)
    until = waits["end_ns"][mine].astype(np.int64) - waits["gil_ns"][mine].astype(np.int64)
    release, got = on_one_line((spans.lock, spans.end_ns), (lock, until))
    order = np.argsort(release, kind="stable")
    before = np.searchsorted(release[order], got, side="right") - 1
    last = order[np.maximum(before, 0)] if len(order) else before
    known = (before >= 0) & (spans.lock[last] == lock)
    known &= waits["outcome"][mine] == Outcome.ACQUIRED
    giver = trace.holds[spans.index[last[known]]]
    mine, until = mine[known], until[known]
    waits["holder"][mine] = giver["release_thread"]
    waits["holder_stack"][mine] = giver["stack"]
    return WakeUps(
        wait=mine,
        lock=lock[known],
        thread=waits["thread"][mine].astype(np.int64),
        start_ns=waits["start_ns"][mine].astype(np.int64),
        got_ns=until,
        giver=giver["release_thread"].astype(np.int64),
        given_ns=spans.end_ns[last[known]],
        stack=giver["stack"].astype(np.int64),
    )
