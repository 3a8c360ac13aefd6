"""Waits and holds as spans of time that sums can be made of.

A trace keeps what its writer wrote. Here times become bounded signed integers: a span that ends
before it starts is empty, one that was open when the recording stopped ends there, and the GIL's
share of a wait is cut off, since by then the lock was already ours. Spans are worked out once for
each trace, and where nothing has to be changed they are the trace's own arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.trace import HoldFlag, Outcome, WaitKind

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from contention_lab.trace import Records, Trace

LAST_TIME_NS: Final = 1 << 53
"""104 days: up to here floats count nanoseconds exactly; later times are taken for this one."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans of time, each belonging to a record of the trace.

    Attributes
    ----------
    index
        Position of the record in `trace.waits` or `trace.holds`, int32.
    lock, thread
        Ids, uint32.
    start_ns, end_ns
        0 <= start <= end <= 2^53, int64.
    is_whole
        They are those of all records, in their order.
    """

    index: npt.NDArray[np.int32]
    lock: npt.NDArray[np.uint32]
    thread: npt.NDArray[np.uint32]
    start_ns: npt.NDArray[np.int64]
    end_ns: npt.NDArray[np.int64]
    is_whole: bool = False

    @property
    def length_ns(self) -> npt.NDArray[np.int64]:
        """Return how long each is, int64."""
        return self.end_ns - self.start_ns

    def where(self, chosen: npt.NDArray[np.bool_ | np.integer[Any]]) -> Spans:
        """Return the chosen ones, by a mask or by positions in the order wanted."""
        if chosen.dtype == np.bool_:
            if chosen.all():
                return self
            chosen = np.flatnonzero(chosen)
        return Spans(
            self.index[chosen],
            self.lock[chosen],
            self.thread[chosen],
            self.start_ns[chosen],
            self.end_ns[chosen],
        )

    def of(self, field: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the values of their records in a field of all records."""
        return field if self.is_whole else field[self.index]


def lock_waits(trace: Trace) -> Spans:
    """Return the time each contended attempt waited for its lock, without the GIL.

    Waiting for an event or an item (`WaitKind.COORDINATION`) is not among it. A wait that was
    still open lasts until the end of the trace.
    """
    return _remembered(trace, "lock_waits", lambda: _waits(trace, WaitKind.CONTENTION))


def coordination_waits(trace: Trace) -> Spans:
    """Return the time threads waited for something other than a lock."""
    return _remembered(trace, "coordination_waits", lambda: _waits(trace, WaitKind.COORDINATION))


def hold_spans(trace: Trace) -> Spans:
    """Return the time of each recorded hold; one that was still open lasts until the end."""
    return _remembered(trace, "hold_spans", lambda: _holds(trace))


def bounds(events: Records) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return when each event with a start and an end began and ended, no end before its start."""
    start = bounded(events["start_ns"])
    return start, _not_before(start, bounded(events["end_ns"]))


def lengths_ns(events: Records) -> npt.NDArray[np.int64]:
    """Return how long each event with a start and an end lasted."""
    start, end = bounds(events)
    return end - start


def bounded(times: npt.NDArray[np.unsignedinteger[Any]]) -> npt.NDArray[np.int64]:
    """Return times as signed integers, `LAST_TIME_NS` at most: a view where none is later."""
    if times.max(initial=0) <= LAST_TIME_NS:
        return times.view(np.int64)
    least: npt.NDArray[np.int64] = np.minimum(times, LAST_TIME_NS).astype(np.int64)
    return least


def _remembered(trace: Trace, name: str, spans: Callable[[], Spans]) -> Spans:
    """Return spans that are worked out once for each trace."""
    if name not in trace.derived:
        trace.derived[name] = spans()
    found: Spans = trace.derived[name]
    return found


def _waits(trace: Trace, kind: WaitKind) -> Spans:
    waits = trace.wait_columns
    index = np.flatnonzero(waits["kind"] == kind).astype(np.int32)
    is_whole = len(index) == len(waits)

    def field(name: str) -> npt.NDArray[Any]:
        values: npt.NDArray[Any] = waits[name]
        return values if is_whole else values[index]

    start, end, gil = (bounded(field(name)) for name in ("start_ns", "end_ns", "gil_ns"))
    end = _ended(end, field("outcome") == Outcome.OPEN, trace.duration_ns)
    end = _not_before(start, end - gil if gil.any() else end)
    return _read_only(Spans(index, field("lock"), field("thread"), start, end, is_whole))


def _holds(trace: Trace) -> Spans:
    holds = trace.hold_columns
    start, end = bounded(holds["start_ns"]), bounded(holds["end_ns"])
    is_open = (holds["flags"] & int(HoldFlag.OPEN)) != 0
    end = _not_before(start, _ended(end, is_open, trace.duration_ns))
    index = np.arange(len(holds), dtype=np.int32)
    return _read_only(Spans(index, holds["lock"], holds["thread"], start, end, is_whole=True))


def _ended(
    end: npt.NDArray[np.int64], is_open: npt.NDArray[np.bool_], last_ns: int
) -> npt.NDArray[np.int64]:
    """Return the ends of spans, of which some last until the end."""
    return np.where(is_open, np.maximum(end, last_ns), end) if is_open.any() else end


def _not_before(start: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the ends; the start, where that is later."""
    return end if (end >= start).all() else np.maximum(start, end)


def _read_only(spans: Spans) -> Spans:
    for field in (spans.index, spans.lock, spans.thread, spans.start_ns, spans.end_ns):
        field.setflags(write=False)
    return spans
