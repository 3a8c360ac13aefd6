"""Rows of failed tries at a lock in which a thread ran for no more than the tries themselves.

Whoever waits for the GIL in such a row wants it only to look at the lock again: it is the lock
that it waits for. Of a thread that does something else between tries that is not so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.intervals import bounds
from contention_lab.analysis.windows import Windows
from contention_lab.trace import WaitFlag

if TYPE_CHECKING:
    from collections.abc import Collection

    from contention_lab.trace import Trace

LONGEST_LOOK_S: Final = 0.0001
"""CPU time for each try, up to which a thread does nothing but try: a try costs less than one
microsecond, with a call that yields or sleeps a dozen to a few dozen."""


def light_tries(trace: Trace, locks: Collection[int] | None = None) -> dict[int, Windows]:
    """Return when each thread tried in a row, and did nothing else.

    Parameters
    ----------
    trace
        The trace.
    locks
        Ids of the locks that are meant; all if None.
    """
    waits = trace.wait_columns
    chosen = waits["flags"] & int(WaitFlag.SERIES) != 0
    chosen &= waits["spin_cpu_ns"] <= LONGEST_LOOK_S * 1e9 * waits["spins"]
    if locks is not None:
        chosen &= np.isin(waits["lock"], [*locks])
    start, end = (waits[name][chosen].astype(np.int64) for name in ("start_ns", "end_ns"))
    thread = waits["thread"][chosen]
    return {
        one: Windows.union(start[thread == one], end[thread == one])
        for one in np.unique(thread).tolist()
    }


def gil_between_tries_ns(trace: Trace, locks: Collection[int]) -> int:
    """Return how long threads waited for the GIL in such rows of tries at certain locks."""
    events = trace.gil_waits
    start, end = bounds(events)
    whole = 0
    for thread, windows in light_tries(trace, locks).items():
        mine = events["thread"] == thread
        whole += int(windows.covered_ns(start[mine], end[mine]).sum())
    return whole
