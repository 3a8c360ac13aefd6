"""Waits within holds: how long the holder of a lock itself waited for something while it held.

Only recorded waits, and blocking calls, are here. A thread has one wait at a time, so its waits
within a hold can be added up from running sums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contention_lab.analysis.intervals import LAST_TIME_NS, coordination_waits
from contention_lab.analysis.overlap import on_one_line
from contention_lab.trace import WaitKind
from contention_lab.trace.layer_schema import BlockingFlag, WorldCall

if TYPE_CHECKING:
    import numpy.typing as npt

    from contention_lab.analysis.intervals import Spans
    from contention_lab.trace import Trace

    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]


def nested_waits(trace: Trace, holds: Spans, ready: Integers) -> dict[str, Floats]:
    """Return the holder's recorded waits within its holds, at most as long as the holds.

    Parameters
    ----------
    trace
        The trace.
    holds
        The holds.
    ready
        When the holder of each could go on, in nanoseconds: from here on waits count.

    Returns
    -------
    dict
        For each hold nanoseconds of `lock` (waiting for other locks), `others` (for events, items
        and threads) and `gil` (for the GIL, before or after it got the other lock).
    """
    waits = trace.wait_columns
    # Who holds one of these locks is in no other wait than these.
    chosen = np.flatnonzero(
        (waits["kind"] == WaitKind.CONTENTION) & np.isin(waits["thread"], np.unique(holds.thread))
    )
    start, end = (waits[name][chosen].astype(np.int64) for name in ("start_ns", "end_ns"))
    length = np.maximum(0, end - start)
    gil_after = np.minimum(waits["gil_ns"][chosen].astype(np.int64), length)
    gil_before = np.minimum(waits["gil_before_ns"][chosen].astype(np.int64), length - gil_after)
    lock, gil = _covered(
        holds, ready, waits["thread"][chosen].astype(np.int64), start, length, gil_before, gil_after
    )
    others = coordination_waits(trace)
    none = np.zeros(len(others.index), dtype=np.int64)
    waited, _ = _covered(
        holds, ready, others.thread.astype(np.int64), others.start_ns, others.length_ns, none, none
    )
    found = {"lock": lock, "others": waited, "gil": gil}
    left = (holds.end_ns - ready).astype(np.float64)
    for name in ("lock", "others", "gil"):
        found[name] = np.minimum(found[name], left)
        left = left - found[name]
    return found


def blocked_calls(trace: Trace, holds: Spans, ready: Integers) -> dict[WorldCall, Floats]:
    """Return how long the holder was in each kind of blocking call within its holds, as recorded.

    Empty where the layer below Python was not there. Calls of a few microseconds are left out.

    Parameters
    ----------
    trace, holds, ready
        As for `nested_waits`.

    Returns
    -------
    dict
        For each kind that occurs: nanoseconds in each hold.
    """
    calls = trace.blocking
    known = np.isin(calls["thread"], np.unique(holds.thread))
    start, end = (_bounded(calls[name][known]) for name in ("start_ns", "end_ns"))
    is_open = calls["flags"][known] & int(BlockingFlag.OPEN) != 0
    length = np.maximum(np.where(is_open, trace.duration_ns, end) - start, 0)
    thread, kind = calls["thread"][known].astype(np.int64), calls["call"][known]
    found: dict[WorldCall, Floats] = {}
    for call in np.unique(kind).tolist():
        mine = kind == call
        none = np.zeros(int(mine.sum()), dtype=np.int64)
        covered, _ = _covered(holds, ready, thread[mine], start[mine], length[mine], none, none)
        number = WorldCall(call) if call in WorldCall.__members__.values() else WorldCall.OTHER
        found[number] = found.get(number, np.zeros(len(ready))) + covered
    return found


def _bounded(times: Integers) -> Integers:
    bounded: Integers = np.minimum(times, LAST_TIME_NS).astype(np.int64)
    return bounded


def _covered(
    holds: Spans,
    ready: Integers,
    thread: Integers,
    start: Integers,
    length: Integers,
    gil_before: Integers,
    gil_after: Integers,
) -> tuple[Floats, Floats]:
    """Return how much of each hold waits of the same thread cover, without and for the GIL.

    The waits of one thread do not overlap; one that goes beyond a hold counts up to its end.
    """
    if not len(thread) or not len(ready):
        return np.zeros(len(ready)), np.zeros(len(ready))
    key, hold_start, hold_end = on_one_line(
        (thread, start), (holds.thread, ready), (holds.thread, holds.end_ns)
    )
    order = np.argsort(key, kind="stable")
    key = key[order]
    gil = (gil_before + gil_after)[order]
    lock_until = np.concatenate([[0], np.cumsum(length[order] - gil)])
    gil_until = np.concatenate([[0], np.cumsum(gil)])

    def until(position: Integers, time_ns: Integers) -> tuple[Integers, Integers]:
        at = np.searchsorted(key, position, side="right")
        last = order[np.maximum(at - 1, 0)]
        same = (at > 0) & (thread[last] == holds.thread)
        over = np.where(same, np.maximum(0, start[last] + length[last] - time_ns), 0)
        gil_over = np.minimum(over, gil_after[last])
        return lock_until[at] - (over - gil_over), gil_until[at] - gil_over

    lock_end, gil_end = until(hold_end, holds.end_ns)
    lock_start, gil_start = until(hold_start, ready)
    return (
        np.maximum(lock_end - lock_start, 0).astype(np.float64),
        np.maximum(gil_end - gil_start, 0).astype(np.float64),
    )
