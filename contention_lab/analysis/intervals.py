"""Waits and holds as spans of time that sums can be made of.

A trace keeps what its writer wrote. Here times become bounded signed integers: a span that ends
before it starts is empty, one that was open when the recording stopped ends there, and the GIL's
share of a wait is cut off, since by then the lock was already ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.trace import HoldFlag, Outcome, WaitKind

if TYPE_CHECKING:
    import numpy.typing as npt

    from contention_lab.trace import Trace

LAST_TIME_NS: Final = 1 << 53
"""104 days: up to here floats count nanoseconds exactly; later times are taken for this one."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans of time, each belonging to a record of the trace.

    Attributes
    ----------
    index
        Position of the record in `trace.waits` or `trace.holds`.
    lock, thread
        Ids, int64.
    start_ns, end_ns
        0 <= start <= end <= 2^53, int64.
    """

    index: npt.NDArray[np.int64]
    lock: npt.NDArray[np.int64]
    thread: npt.NDArray[np.int64]
    start_ns: npt.NDArray[np.int64]
    end_ns: npt.NDArray[np.int64]

    @property
    def length_ns(self) -> npt.NDArray[np.int64]:
        """Return how long each is, int64."""
        return self.end_ns - self.start_ns

    def where(self, chosen: npt.NDArray[np.bool_ | np.intp]) -> Spans:
        """Return the chosen ones, by a mask or by positions in the order wanted."""
        return Spans(
            self.index[chosen],
            self.lock[chosen],
            self.thread[chosen],
            self.start_ns[chosen],
            self.end_ns[chosen],
        )


def lock_waits(trace: Trace) -> Spans:
    """Return the time each contended attempt waited for its lock, without the GIL.

    Waiting for an event or an item (`WaitKind.COORDINATION`) is not among it. A wait that was
    still open lasts until the end of the trace.
    """
    return _waits(trace, WaitKind.CONTENTION)


def coordination_waits(trace: Trace) -> Spans:
    """Return the time threads waited for something other than a lock."""
    return _waits(trace, WaitKind.COORDINATION)


def _waits(trace: Trace, kind: WaitKind) -> Spans:
    waits = trace.waits
    index = np.flatnonzero(waits["kind"] == kind)
    start, end, gil = (_bounded(waits[name][index]) for name in ("start_ns", "end_ns", "gil_ns"))
    is_open = waits["outcome"][index] == Outcome.OPEN
    end = np.where(is_open, np.maximum(end, trace.duration_ns), end)
    return Spans(
        index,
        waits["lock"][index].astype(np.int64),
        waits["thread"][index].astype(np.int64),
        start,
        np.maximum(start, end - gil),
    )


def hold_spans(trace: Trace) -> Spans:
    """Return the time of each recorded hold; one that was still open lasts until the end."""
    holds = trace.holds
    is_open = (holds["flags"] & int(HoldFlag.OPEN)) != 0
    start, end = _bounded(holds["start_ns"]), _bounded(holds["end_ns"])
    end = np.maximum(start, np.where(is_open, np.maximum(end, trace.duration_ns), end))
    return Spans(
        np.arange(len(holds)),
        holds["lock"].astype(np.int64),
        holds["thread"].astype(np.int64),
        start,
        end,
    )


def _bounded(times: npt.NDArray[np.unsignedinteger[Any]]) -> npt.NDArray[np.int64]:
    bounded: npt.NDArray[np.int64] = np.minimum(times, LAST_TIME_NS).astype(np.int64)
    return bounded
