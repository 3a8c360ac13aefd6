"""Waits for native locks within holds of recorded locks, and the cores that are idle meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contention_lab.analysis.critical_path import union_ns
from contention_lab.analysis.intervals import LAST_TIME_NS
from contention_lab.analysis.overlap import on_one_line

if TYPE_CHECKING:
    import numpy.typing as npt

    from contention_lab.analysis.intervals import Spans
    from contention_lab.trace import Records, Trace

    Integers = npt.NDArray[np.int64]

FEWEST_LOOKS = 3
"""Samples of the process from which it is said how many cores were idle."""


def waited_within(waits: Records, holds: Spans) -> Integers:
    """Return how much of each hold its thread waited for a native lock, in nanoseconds.

    Parameters
    ----------
    waits
        Events of one lock, `schema.NATIVE_WAIT`. Those of one thread do not overlap.
    holds
        Recorded holds. A wait counts where it began within the hold, up to the hold's end.
    """
    if not len(waits) or not len(holds.index):
        return np.zeros(len(holds.index), dtype=np.int64)
    start, end = bounds(waits)
    thread = waits["thread"].astype(np.int64)
    holder = holds.thread.astype(np.int64)
    key, first, last = on_one_line(
        (thread, start), (holder, holds.start_ns), (holder, holds.end_ns)
    )
    order = np.argsort(key, kind="stable")
    until = np.concatenate([[0], np.cumsum((end - start)[order])])
    begin = np.searchsorted(key[order], first, side="left")
    stop = np.searchsorted(key[order], last, side="left")
    latest = order[np.maximum(stop - 1, 0)]
    beyond = np.where(stop > begin, np.maximum(0, end[latest] - holds.end_ns), 0)
    covered: Integers = until[stop] - until[begin] - beyond
    return covered


def idle_share(trace: Trace, waits: Records, cores: int | None) -> float | None:
    """Return the share of the cores that nobody of the program wanted while threads waited.

    None where it was not looked at often enough, or the number of cores is not known.
    """
    load = trace.load
    if not cores or not len(load):
        return None
    start, end = bounds(waits)
    order = np.argsort(start)
    time = np.minimum(load["time_ns"], LAST_TIME_NS).astype(np.int64)
    begun = np.searchsorted(start[order], time, side="right")
    ended = np.searchsorted(np.sort(end), time, side="left")
    during = begun > ended
    if np.count_nonzero(during) < FEWEST_LOOKS:
        return None
    wanted = load["runnable"].astype(np.int64) + load["native_runnable"]
    return float(np.maximum(0.0, 1.0 - wanted[during] / cores).mean())


def anybody_waits_s(waits: Records) -> float:
    """Return for how long any thread waited, in seconds."""
    return union_ns(*bounds(waits)) / 1e9


def bounds(waits: Records) -> tuple[Integers, Integers]:
    """Return starts and ends, no end before its start."""
    start, end = (
        np.minimum(waits[name], LAST_TIME_NS).astype(np.int64) for name in ("start_ns", "end_ns")
    )
    return start, np.maximum(start, end)
