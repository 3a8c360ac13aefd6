"""What every thread did when: the intervals of a timeline, made once for each recording.

A row is a thread or a task. What waits and what holds lie in two layers, since who waits may hold
something else. It formats nothing; `timeline_section.py` writes it into the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.analysis.distinct import places, values
from contention_lab.analysis.intervals import (
    LAST_TIME_NS,
    coordination_waits,
    hold_spans,
    lock_waits,
)
from contention_lab.analysis.overlap import on_one_line
from contention_lab.analysis.waiters_over_time import waiters_over_time
from contention_lab.report.timeline_contexts import (
    HoldContext,
    WaitContext,
    WorstWait,
    hold_contexts,
    wait_contexts,
    worst_waits,
)
from contention_lab.report.timeline_intervals import Intervals, coarsened, intervals
from contention_lab.report.timeline_native import native_waits
from contention_lab.trace.layer_schema import GilEventFlag

if TYPE_CHECKING:
    import numpy.typing as npt

    from contention_lab.analysis import Blame
    from contention_lab.analysis.intervals import Spans
    from contention_lab.report.timeline_native import NativeWaits
    from contention_lab.trace import Lock, Thread, Trace

    Integers = npt.NDArray[np.int64]

MOST_INTERVALS: Final = 200_000
"""Of one recording; a page may have room for fewer."""
MOST_ROWS: Final = 200
"""Threads with a row: those that wait and hold longest."""
LANES: Final = 4
"""Locks with a lane: the most waited for,"""
LEAST_OF_A_LANE: Final = 0.01
"""with at least this share of all waiting."""
MOST_POINTS: Final = 4_000
"""Of a lane: as many as a wide screen has pixels."""


class WaitState(IntEnum):
    """Kinds of the layer that waits."""

    PARKED = 0
    SPINNING = 1
    COORDINATION = 2
    GIL = 3
    NATIVE = 4


class HoldState(IntEnum):
    """Kinds of the layer that holds."""

    ALONE = 0
    WAITED_FOR = 1


@dataclass(frozen=True, slots=True)
class Lane:
    """How many wait for a lock from each of these moments on."""

    lock: Lock
    wait_ns: int
    time_ns: Integers
    waiting: npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Timeline:
    """The rows of a recording.

    Attributes
    ----------
    length_ns
        From the start to the last event.
    threads
        Of the rows.
    rows_left_out
        Threads without a row.
    waits, holds
        `kind` is a `WaitState` and a `HoldState`, `context` a position in the contexts.
    wait_contexts, hold_contexts
        Who and where.
    lanes
        The most waited-for locks, the worst first.
    worst
        The longest waits for locks, the longest first.
    wait_count, wait_ns
        Of all waits for locks, as recorded.
    step_ns
        Shorter intervals may have been merged; 0 if none was.
    """

    length_ns: int
    threads: tuple[Thread, ...]
    rows_left_out: int
    waits: Intervals
    holds: Intervals
    wait_contexts: tuple[WaitContext, ...]
    hold_contexts: tuple[HoldContext, ...]
    lanes: tuple[Lane, ...]
    worst: tuple[WorstWait, ...]
    wait_count: int
    wait_ns: int
    step_ns: int

    @property
    def pinned(self) -> Integers:
        """Starts of the longest waits, ascending."""
        return np.sort(np.array([wait.start_ns for wait in self.worst], dtype=np.int64))


def timeline(trace: Trace, blame: Blame, most: int = MOST_INTERVALS) -> Timeline:
    """Return the rows of a trace.

    Parameters
    ----------
    trace
        A trace.
    blame
        `analysis.blame` of it.
    most
        Intervals wanted at most; more are merged where they are too short to be seen.
    """
    contention, held = lock_waits(trace), hold_spans(trace)
    natives = native_waits(trace)
    waiting, holding = _waiting(trace, natives), _holding(contention, held)
    ids, left_out = _threads(trace, waiting, holding)
    table = np.full(1 + int(ids.max(initial=0)), -1)
    table[ids] = np.arange(len(ids))
    worst = worst_waits(trace, blame, contention.where(_in(table, contention.thread)))
    layers = tuple(
        intervals(_rows(table, part.thread), part.start, part.end, part.kind, part.record)
        for part in (waiting, holding)
    )
    ends = (int(part.end.max(initial=0)) for part in (waiting, holding))
    length = max(min(trace.duration_ns, LAST_TIME_NS), *ends)
    pinned = np.sort(np.array([wait.start_ns for wait in worst], dtype=np.int64))
    (waits, holds), step = coarsened(layers, most, length, (pinned, pinned[:0]))
    who_waits, of_wait = wait_contexts(trace, blame, waits.context, natives)
    who_holds, of_hold = hold_contexts(trace, holds.context)
    return Timeline(
        length_ns=length,
        threads=tuple(trace.thread(one) for one in ids.tolist()),
        rows_left_out=left_out,
        waits=waits.with_context(of_wait),
        holds=holds.with_context(of_hold),
        wait_contexts=who_waits,
        hold_contexts=who_holds,
        lanes=_lanes(trace, contention),
        worst=worst,
        wait_count=int(np.count_nonzero(contention.length_ns)),
        wait_ns=int(contention.length_ns.sum()),
        step_ns=step,
    )


@dataclass(frozen=True, slots=True)
class _Layer:
    """Intervals before they have rows."""

    thread: npt.NDArray[np.uint32]
    start: Integers
    end: Integers
    kind: npt.NDArray[np.uint8]
    record: npt.NDArray[np.int32]
    """Position in `trace.waits` or `trace.holds`; of a wait that the layer below Python saw, -1
    minus its position in `trace.gil_waits`, or in the native waits, which are numbered on."""


def _waiting(trace: Trace, natives: NativeWaits) -> _Layer:
    parts = []
    waits = trace.wait_columns
    for spans, is_lock in ((lock_waits(trace), True), (coordination_waits(trace), False)):
        kind = np.full(len(spans.index), WaitState.COORDINATION, dtype=np.uint8)
        if is_lock:
            spun = spans.of(waits["spin_ns"]) > spans.of(waits["park_ns"])
            kind = np.where(spun, WaitState.SPINNING, WaitState.PARKED).astype(np.uint8)
        parts.append(_Layer(spans.thread, spans.start_ns, spans.end_ns, kind, spans.index))
        if not len(trace.gil_waits):
            gil = spans.of(waits["gil_ns"])
            some = np.flatnonzero(gil)
            end = spans.end_ns[some]
            until = np.minimum(end.astype(np.uint64) + gil[some], LAST_TIME_NS).astype(np.int64)
            kind = np.full(len(some), WaitState.GIL, dtype=np.uint8)
            parts.append(_Layer(spans.thread[some], end, until, kind, spans.index[some]))
    events = trace.gil_waits
    if len(events):
        start, end = (np.minimum(events[n], LAST_TIME_NS).astype(np.int64) for n in _ENDS)
        is_open = (events["flags"] & int(GilEventFlag.OPEN)) != 0
        end = np.where(is_open, np.maximum(end, trace.duration_ns), end)
        kind = np.full(len(events), WaitState.GIL, dtype=np.uint8)
        record = -1 - np.arange(len(events), dtype=np.int32)
        parts.append(_Layer(events["thread"], start, end, kind, record))
    state = np.where(natives.is_contention, WaitState.NATIVE, WaitState.COORDINATION)
    record = -1 - len(events) - np.arange(len(natives.lock), dtype=np.int32)
    ends = np.maximum(natives.end_ns, natives.start_ns)
    parts.append(_Layer(natives.thread, natives.start_ns, ends, state.astype(np.uint8), record))
    return _Layer(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("thread", "start", "end", "kind", "record")
        )
    )


_ENDS: Final = ("start_ns", "end_ns")


def _holding(contention: Spans, held: Spans) -> _Layer:
    """Return holds, parted where somebody began to wait for them and where the last one ended."""
    waits = contention.where(contention.length_ns > 0)
    begin, until, start, end = on_one_line(
        (waits.lock, waits.start_ns),
        (waits.lock, waits.end_ns),
        (held.lock, held.start_ns),
        (held.lock, held.end_ns),
    )
    order = np.argsort(begin, kind="stable")
    begin, reach = begin[order], np.maximum.accumulate(until[order])
    fresh = np.flatnonzero(np.append(True, begin[1:] > reach[:-1])[: len(begin)])
    opens, closes = begin[fresh], reach[np.append(fresh[1:], len(begin))[: len(fresh)] - 1]
    first = np.searchsorted(closes, start, side="right")
    last = np.searchsorted(opens, end, side="left") - 1
    waited_for = first <= last
    some = np.flatnonzero(waited_for)
    since, up_to = held.start_ns.copy(), held.start_ns.copy()
    since[some] += np.maximum(opens[first[some]] - start[some], 0)
    up_to[some] += np.minimum(closes[last[some]], end[some]) - start[some]
    alone = np.where(waited_for, since, held.end_ns)
    pieces = (
        (held.start_ns, alone, HoldState.ALONE),
        (since, up_to, HoldState.WAITED_FOR),
        (np.where(waited_for, up_to, held.end_ns), held.end_ns, HoldState.ALONE),
    )
    parts = []
    for piece_start, piece_end, kind in pieces:
        there = np.flatnonzero(piece_end > piece_start)
        parts.append(
            (
                held.thread[there],
                piece_start[there],
                piece_end[there],
                np.full(len(there), kind, dtype=np.uint8),
                held.index[there],
            )
        )
    return _Layer(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _threads(trace: Trace, *layers: _Layer) -> tuple[npt.NDArray[np.int64], int]:
    """Return the ids of the threads with a row, the main thread's first, and how many have none."""
    ids = np.unique(np.concatenate([values(layer.thread) for layer in layers])).astype(np.int64)
    busy = np.zeros(len(ids))
    for layer in layers:
        at = places(ids, layer.thread)
        busy += np.bincount(at, weights=layer.end - layer.start, minlength=len(ids))
    chosen = np.argsort(-busy, kind="stable")[:MOST_ROWS]
    is_main = np.array([trace.thread(one).is_main for one in ids[chosen].tolist()], dtype=np.bool_)
    order = chosen[np.lexsort((ids[chosen], ~is_main))]
    return ids[order], len(ids) - len(order)


def _rows(table: npt.NDArray[Any], thread: npt.NDArray[np.uint32]) -> npt.NDArray[Any]:
    return np.where(thread < len(table), table[np.minimum(thread, len(table) - 1)], -1)


def _in(table: npt.NDArray[Any], thread: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = _rows(table, thread) >= 0
    return found


def _lanes(trace: Trace, contention: Spans) -> tuple[Lane, ...]:
    ids = values(contention.lock)
    at = places(ids, contention.lock)
    sums = np.bincount(at, weights=contention.length_ns, minlength=len(ids))
    found = []
    for place in np.argsort(-sums, kind="stable")[:LANES].tolist():
        mine = contention.where(at == place)
        if sums[place] <= LEAST_OF_A_LANE * sums.sum():
            break
        points = waiters_over_time(mine.start_ns, mine.end_ns, MOST_POINTS)
        found.append(Lane(trace.lock(int(ids[place])), int(sums[place]), *points))
    return tuple(found)
