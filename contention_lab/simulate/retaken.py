"""Spinlocks that their owner takes back before those who spin for them: what it did meanwhile.

Who spins for a `SpinLock` takes the GIL before it tries. If the last owner had the lock again
nearly every time, though others waited for it all along, it had kept the GIL from the release on:
had it let go, they would have come first. Samples of the GIL's holder cannot tell that of times as
short.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.trace import WaitKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contention_lab.trace import Trace

    Integers = NDArray[np.int64]

GIL_FIRST: Final = frozenset({"SpinLock"})
"""Types whose waiters take the GIL before they try."""
FEWEST: Final = 8
"""Releases with waiters from which on they say what a thread does afterwards."""
NEARLY_ALWAYS: Final = 0.9
"""Share of them after which the last owner is the next: spinners without a core lose, too."""


def with_gil_kept(trace: Trace, thread: int) -> tuple[Integers, Integers]:
    """Return the times between holds of a thread in which it kept the GIL, as far as locks tell.

    Parameters
    ----------
    trace
        The recording.
    thread
        Its id.

    Returns
    -------
    starts, ends
        In ns, int64, ascending; of neighbouring holds of one lock.
    """
    spans = [
        (start[mine], end[mine])
        for start, end, owner in _all_kept(trace).values()
        for mine in [owner == thread]
    ]
    if not spans:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    starts, ends = (np.concatenate(part) for part in zip(*spans, strict=True))
    order = np.argsort(starts, kind="stable")
    return starts[order], ends[order]


def _all_kept(trace: Trace) -> dict[int, tuple[Integers, Integers, Integers]]:
    """Return by lock where times between two holds of one thread begin and end, and whose."""
    found = trace.derived.get("gil_kept")
    if found is None:
        spins = [id_ for id_, lock in trace.locks.items() if lock.type in GIL_FIRST]
        found = {id_: kept for id_ in spins if (kept := _kept(trace, id_)) is not None}
        trace.derived["gil_kept"] = found
    return found


def _kept(trace: Trace, lock: int) -> tuple[Integers, Integers, Integers] | None:
    holds, waits = trace.hold_columns, trace.wait_columns
    mine = np.flatnonzero(holds["lock"] == lock)
    mine = mine[np.argsort(holds["start_ns"][mine], kind="stable")]
    owner = holds["thread"][mine].astype(np.int64)
    released = holds["end_ns"][mine][:-1].astype(np.int64)
    taken = holds["start_ns"][mine][1:].astype(np.int64)
    same = owner[1:] == owner[:-1]
    others = np.flatnonzero((waits["lock"] == lock) & (waits["kind"] == WaitKind.CONTENTION))
    begun = np.sort(waits["start_ns"][others].astype(np.int64))
    over = np.sort(waits["end_ns"][others].astype(np.int64))
    # All the time: those that began before the release, less those that ended before the next hold.
    waited = np.searchsorted(begun, released, side="right") > np.searchsorted(over, taken)
    passed = np.searchsorted(begun, released, side="right") > np.searchsorted(over, released)
    kept, lost = int((same & waited).sum()), int((~same & passed).sum())
    if kept < FEWEST or kept < NEARLY_ALWAYS * (kept + lost):
        return None
    return released[same], taken[same], owner[:-1][same]
