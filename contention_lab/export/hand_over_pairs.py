"""Which release let which wait go on: the arrows of a timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contention_lab.analysis.intervals import hold_spans, lock_waits
from contention_lab.analysis.overlap import on_one_line
from contention_lab.trace import HoldFlag, Outcome

if TYPE_CHECKING:
    import numpy.typing as npt

    from contention_lab.trace import Trace


class HandOverPairs(NamedTuple):
    """Pairs of a wait and the hold whose release it waited for, the longest wait first.

    Attributes
    ----------
    wait, hold
        Positions in `trace.waits` and `trace.holds`.
    """

    wait: npt.NDArray[np.intp]
    hold: npt.NDArray[np.intp]


def hand_over_pairs(trace: Trace, most: int) -> HandOverPairs:
    """Return the pairs of the longest waits that ended with the lock.

    The release is the last one of that lock before the wait was over; a wait during which no
    recorded hold ended has none.

    Parameters
    ----------
    trace
        A trace.
    most
        How many pairs at most.
    """
    waits, holds = lock_waits(trace), hold_spans(trace)
    got = waits.of(trace.wait_columns["outcome"]) == Outcome.ACQUIRED
    waits = waits.where(got & (waits.length_ns > 0))
    holds = holds.where((trace.hold_columns["flags"] & int(HoldFlag.OPEN)) == 0)
    none = np.zeros(0, dtype=np.intp)
    if not len(waits.index) or not len(holds.index):
        return HandOverPairs(none, none)
    release, until, since = on_one_line(
        (holds.lock, holds.end_ns), (waits.lock, waits.end_ns), (waits.lock, waits.start_ns)
    )
    order = np.argsort(release, kind="stable")
    release = release[order]
    before = np.searchsorted(release, until, side="right") - 1
    found = (before >= 0) & (release[np.maximum(before, 0)] >= since)
    wait = np.flatnonzero(found)
    longest = np.argsort(-waits.length_ns[wait], kind="stable")[:most]
    wait = wait[longest]
    return HandOverPairs(
        waits.index[wait].astype(np.intp),
        holds.index[order[before[wait]]].astype(np.intp),
    )
