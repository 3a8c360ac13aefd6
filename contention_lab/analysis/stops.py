"""Times during which the whole process was stopped, and a trace without them.

A stopped program (SIGSTOP, a debugger, a frozen container, a machine that sleeps while the clock
goes on) waits for nothing and holds nothing up, but the spans that were open then seem to last.
The recorder's writer, which needs neither the GIL nor anything of the program, reports ten times a
second: if it has not for a second, while the process got hardly any CPU time and nothing at all is
in the trace, everything stood still.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.analysis.intervals import LAST_TIME_NS, bounded, lengths_ns
from contention_lab.analysis.sums import summed
from contention_lab.analysis.windows import Windows
from contention_lab.trace import ChunkKind, GilFlag

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from contention_lab.trace import Records, Trace

    Integers = npt.NDArray[np.int64]

LEAST_STOP_NS: Final = 1_000_000_000
"""Shorter ones are not told from a machine so busy that the writer gets no CPU for long."""
USUAL_BEAT_NS: Final = 300_000_000
"""A recorder that usually reports less often says nothing by not reporting."""
LEAST_BEATS: Final = 5
"""And what is usual is not known from fewer."""
MOST_CPU: Final = 0.1
"""Share of that time for which the process may have been on a CPU: just before and after it."""
SPANS: Final = ("start_ns", "end_ns")
TIMES: Final = (*SPANS, "time_ns")
PARTS: Final = ("park_ns", "gil_ns", "spin_ns")
"""Of a wait, in the order in which a stop is taken off them."""


def stops(trace: Trace) -> Windows:
    """Return when the process was stopped, since the start of the recording."""
    beats = trace.beats
    time = np.concatenate([[0], bounded(beats["time_ns"])])
    cpu = np.concatenate([[0], beats["process_cpu_ns"].astype(np.float64)])
    gap = np.diff(time)
    usual = np.median(gap) if len(gap) >= LEAST_BEATS else LAST_TIME_NS
    if usual > USUAL_BEAT_NS:
        return Windows(time[:0], time[:0])
    silent = np.flatnonzero((gap >= LEAST_STOP_NS) & (np.diff(cpu) <= MOST_CPU * gap))
    found = []
    if len(silent):
        events = _events(trace)
        for first in silent.tolist():
            start, end = (int(at) for at in time[first : first + 2])
            inside = events[(events > start) & (events < end)]
            edges = np.concatenate([[start], inside, [end]])
            longest = int(np.diff(edges).argmax())
            if edges[longest + 1] - edges[longest] >= LEAST_STOP_NS:
                found.append((int(edges[longest]), int(edges[longest + 1])))
    start_ns, end_ns = np.array(found, dtype=np.int64).reshape(-1, 2).T
    return Windows(start_ns, end_ns)


def without_stops(trace: Trace, stopped: Windows) -> Trace:
    """Return a trace as if the process had not been stopped.

    Parameters
    ----------
    trace
        A trace.
    stopped
        Its stops.

    Returns
    -------
    Trace
        What came after a stop comes that much earlier, and what was open during one is that much
        shorter, in its records and in the totals; the same trace if there is no stop. Of holds
        that are in no record the totals keep the time.
    """
    if not len(stopped.start_ns):
        return trace
    clock = _Clock(stopped)
    waits, wait_ns = clock.records(trace.waits)
    holds, hold_ns = clock.records(trace.holds)
    left = wait_ns.astype(np.uint64)
    for name in PARTS:
        taken = np.minimum(waits[name], left)
        waits[name] -= taken
        left -= taken
    return replace(
        trace,
        duration_ns=clock.at(trace.duration_ns),
        threads={
            key: replace(one, start_ns=clock.at(one.start_ns), end_ns=clock.at(one.end_ns))
            for key, one in trace.threads.items()
        },
        wait_chunks=(waits,),
        hold_chunks=((0, holds),),
        counter_chunks=(_counters(trace, (waits, wait_ns), (holds, hold_ns)),),
        layer_chunks={
            kind: (_gil_totals(trace, clock, stopped),)
            if kind == ChunkKind.GIL_TOTALS
            else tuple(clock.records(one)[0] for one in chunks)
            for kind, chunks in trace.layer_chunks.items()
        },
        gil_chunks=(clock.records(trace.gil)[0],),
        order_chunks=(clock.records(trace.orders)[0],),
        state_chunks=(clock.records(trace.states)[0],),
        load_chunks=(clock.records(trace.load)[0],),
        step_chunks=(clock.records(trace.steps)[0],),
        beat_chunks=(clock.records(trace.beats)[0],),
    )


class _Clock:
    """Time without the stops.

    Parameters
    ----------
    stopped
        The stops.
    """

    def __init__(self, stopped: Windows) -> None:
        self._start = stopped.start_ns
        self._length = stopped.end_ns - stopped.start_ns
        self._before = np.concatenate([[0], np.cumsum(self._length)])

    def times(self, time_ns: npt.NDArray[Any]) -> Integers:
        """Return moments by this clock."""
        known = bounded(time_ns)
        last = np.searchsorted(self._start, known, side="right") - 1
        at = np.maximum(last, 0)
        since = np.clip(known - self._start[at], 0, self._length[at])
        late: Integers = known - np.where(last < 0, 0, self._before[at] + since)
        return late

    def at(self, time_ns: int) -> int:
        """Return one moment by this clock."""
        return int(self.times(np.array([time_ns], dtype=np.uint64))[0])

    def records(self, records: Records) -> tuple[Records, Integers]:
        """Return records by this clock, and by how much each has become shorter."""
        moved: Records = records.copy()
        names = records.dtype.names or ()
        for name in (name for name in TIMES if name in names):
            moved[name] = self.times(records[name])
        if not {*SPANS} <= {*names}:
            return moved, np.zeros(len(records), dtype=np.int64)
        return moved, lengths_ns(records) - lengths_ns(moved)


def _events(trace: Trace) -> Integers:
    """Return every moment at which something is known to have happened, in order."""
    chunked: list[Records] = [trace.waits, trace.holds, trace.gil, trace.states, trace.load]
    chunked += [trace.steps, trace.orders]
    for chunks in trace.layer_chunks.values():
        chunked += list(chunks)
    columns = [
        bounded(records[name])
        for records in chunked
        for name in TIMES
        if name in (records.dtype.names or ())
    ]
    return np.sort(np.concatenate([np.zeros(1, dtype=np.int64), *columns]))


def _counters(
    trace: Trace, shorter_waits: tuple[Records, Integers], shorter_holds: tuple[Records, Integers]
) -> Records:
    """Return totals without the time that recorded waits and holds have lost."""
    counters: Records = trace.counters.copy()
    before, (waits, wait_ns), (holds, hold_ns) = trace.waits, shorter_waits, shorter_holds
    for lock, thread in np.unique(waits[wait_ns > 0][["lock", "thread"]]).tolist():
        mine = (waits["lock"] == lock) & (waits["thread"] == thread)
        for row in _of(counters, lock, thread):
            for name in PARTS:
                part = before[name][mine].astype(np.int64) - waits[name][mine].astype(np.int64)
                row[name] -= _lost(row[name], part.sum())
            row["wait_ns"] -= _lost(row["wait_ns"], wait_ns[mine].sum())
            row["max_wait_ns"] = min(int(row["max_wait_ns"]), int(lengths_ns(waits[mine]).max()))
    for lock, thread in np.unique(holds[hold_ns > 0][["lock", "thread"]]).tolist():
        mine = (holds["lock"] == lock) & (holds["thread"] == thread)
        for row in _of(counters, lock, thread):
            row["hold_ns"] -= _lost(row["hold_ns"], hold_ns[mine].sum())
            row["max_hold_ns"] = min(int(row["max_hold_ns"]), int(lengths_ns(holds[mine]).max()))
    return counters


def _of(counters: Records, lock: int, thread: int) -> Iterator[Records]:
    """Yield views of the totals of a lock and thread, to be changed."""
    for at in np.flatnonzero((counters["lock"] == lock) & (counters["thread"] == thread)).tolist():
        yield counters[at]


def _lost(total: Any, part: Any) -> np.uint64:
    """Return as much of a total as a part can have been of it."""
    return np.uint64(min(int(total), max(0, int(part))))


def _gil_totals(trace: Trace, clock: _Clock, stopped: Windows) -> Records:
    """Return the totals of the GIL without the time that whoever had it, or waited, was stopped."""
    totals: Records = trace.gil_totals.copy()
    _, waited = clock.records(trace.gil_waits)
    for thread, ns in summed(trace.gil_waits["thread"], waited).items():
        mine = totals["thread"] == thread
        totals["wait_ns"][mine] -= np.minimum(totals["wait_ns"][mine], np.uint64(ns))
    gil = trace.gil
    for start, end in zip(stopped.start_ns.tolist(), stopped.end_ns.tolist(), strict=True):
        before = int(np.searchsorted(gil["time_ns"], start, side="right")) - 1
        if before >= 0 and gil["flags"][before] & int(GilFlag.HELD):
            mine = totals["thread"] == gil["holder"][before]
            totals["held_ns"][mine] -= np.minimum(totals["held_ns"][mine], np.uint64(end - start))
    return totals
