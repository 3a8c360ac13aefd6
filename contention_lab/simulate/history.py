"""What each thread of a trace did, as steps: think, acquire, hold, release, in the recorded order.

Waits are left out, since a simulation makes its own. Nested locks stay nested, holds keep their own
lengths and their neighbours, so that whatever correlates (long holds follow each other, a lock is
held after another) is kept. Holds that were only counted (level `profile` keeps those that blocked
somebody) are put back evenly between the recorded ones, as many and together as long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contention_lab.analysis.intervals import coordination_waits, hold_spans
from contention_lab.simulate.capacity import capacity
from contention_lab.simulate.own_time import Stretches, own_time
from contention_lab.simulate.packing import OPS, Op, OpFlag
from contention_lab.simulate.time_use import ALL_PYTHON, TimeUse, time_use
from contention_lab.trace import HoldFlag, Outcome, WaitKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contention_lab.trace import Trace

AWAITED: Final = -2
"""In place of a hold: the step is a wait for others to do something, which they did."""
MOST_GRAINS: Final = 16
"""Alternations in one stretch of time, at most."""
MOST_COUNTED: Final = 2_000_000
"""Holds of a thread, at most, that are put back after having only been counted."""

_RELEASE, _ACQUIRE, _OUT, _BACK, _SLEEP, _AWAKE, _DOZE, _UP, _EDGE = range(9)


@dataclass(frozen=True, slots=True)
class History:
    """The steps of one thread.

    Attributes
    ----------
    thread
        Its id in the trace.
    ops
        OPS records; their targets are ids of locks in the trace.
    holds
        For acquires and releases the record in `trace.holds` that they belong to, int64; -1 for
        none; `AWAITED` for the time in which the thread waited for others to do something.
    cuts
        Places between steps at which no lock is held, int64, ascending; 0 and the end included.
    spent_ns
        Time of all steps before each cut, in ns.
    use
        What its own time consisted of.
    """

    thread: int
    ops: NDArray[np.void]
    holds: NDArray[np.int64]
    cuts: NDArray[np.int64]
    spent_ns: NDArray[np.float64]
    use: TimeUse


class Held(NamedTuple):
    """Holds of one thread: start and end in ns, lock id, record in `trace.holds` or -1."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    lock: NDArray[np.int64]
    record: NDArray[np.int64]

    @classmethod
    def none(cls) -> Held:
        """Return no holds."""
        return cls(*(np.zeros(0, np.int64) for _ in range(4)))

    def between(self, began: int, ended: int) -> Held:
        """Return those that are at least partly within a span of time, cut to it."""
        some = (self.end >= began) & (self.start <= ended)
        start, end = (times[some].clip(began, ended) for times in (self.start, self.end))
        return Held(start, end, self.lock[some], self.record[some])

    def and_also(self, other: Held) -> Held:
        """Return both."""
        return Held(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


class Moments(NamedTuple):
    """Moments in the life of a thread, in order: when, of what kind, of which lock and hold."""

    times: NDArray[np.int64]
    kinds: NDArray[np.intp]
    locks: NDArray[np.int64]
    records: NDArray[np.int64]


def history(trace: Trace, thread: int, span: tuple[int, int] | None = None) -> History:
    """Return the steps of a thread.

    Parameters
    ----------
    trace
        The recording.
    thread
        Its id.
    span
        Only what it did between these times, in ns; all it did by default.
    """
    recorded = trace.thread(thread)
    lived = max(recorded.end_ns or trace.duration_ns, recorded.start_ns)
    began, ended = (recorded.start_ns, lived) if span is None else span
    began = min(max(began, recorded.start_ns), lived)
    ended = max(began, min(ended, lived))
    out_start, out_end = _lock_waits(trace, thread)
    during = (out_end >= began) & (out_start <= ended)
    out_start, out_end = out_start[during], out_end[during]
    coordination = coordination_waits(trace)
    coordination = coordination.where(coordination.thread == thread)
    during = (coordination.end_ns >= began) & (coordination.start_ns <= ended)
    coordination = coordination.where(during)
    in_vain = coordination.of(trace.wait_columns["outcome"]) == Outcome.TIMED_OUT
    dozed, slept = coordination.where(in_vain), coordination.where(~in_vain)
    held = _recorded(trace, thread).between(began, ended)
    absent_start = np.concatenate([out_start, coordination.start_ns])
    absent_end = np.concatenate([out_end, coordination.end_ns])
    share = (ended - began) / max(1, lived - recorded.start_ns)
    held = held.and_also(
        _counted(trace, thread, held, absent_start, absent_end, began, ended, share)
    )

    times = np.concatenate(
        [
            held.end,
            held.start,
            out_start,
            out_end,
            slept.start_ns,
            slept.end_ns,
            dozed.start_ns,
            dozed.end_ns,
            [began, ended],
        ]
    ).clip(began, ended)
    kinds = np.repeat(
        [_RELEASE, _ACQUIRE, _OUT, _BACK, _SLEEP, _AWAKE, _DOZE, _UP, _EDGE],
        [
            *[len(held.end)] * 2,
            *[len(out_start)] * 2,
            *[len(slept.start_ns)] * 2,
            *[len(dozed.start_ns)] * 2,
            2,
        ],
    )
    rest = len(times) - 2 * len(held.end)
    locks = np.concatenate([held.lock, held.lock, np.zeros(rest, np.int64)])
    index = np.concatenate([held.record, held.record, np.full(rest, -1, np.int64)])
    # At one time: releases first, the inner one before the outer; then holds of no length, each by
    # itself; then acquires, the outer one first.
    nothing, count = np.zeros(rest, np.int64), np.arange(len(held.end))
    brief = np.concatenate([held.start == held.end, held.start == held.end, nothing > 0])
    turn = np.where(brief, 1, np.where(kinds == _RELEASE, 0, kinds + 1))
    inner = np.where(brief, 0, np.concatenate([-held.start, -held.end, nothing]))
    again = np.concatenate([-count, count, nothing])
    again = np.where(brief, 2 * np.abs(again) + (kinds == _RELEASE), again)
    order = np.lexsort((again, inner, turn, times))
    moments = Moments(times[order], kinds[order], locks[order], index[order])
    return _steps(trace, thread, moments, share)


def _recorded(trace: Trace, thread: int) -> Held:
    mine = hold_spans(trace)
    mine = mine.where(mine.thread == thread)
    whole = (mine.of(trace.hold_columns["flags"]) & int(HoldFlag.HANDED_OFF | HoldFlag.OPEN)) == 0
    unlimited = [id_ for id_ in trace.locks if not capacity(trace, id_)]
    mine = mine.where(whole & ~np.isin(mine.lock, unlimited))
    return Held(mine.start_ns, mine.end_ns, mine.lock.astype(np.int64), mine.index.astype(np.int64))


def _lock_waits(trace: Trace, thread: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the spans of waits for locks, and for the GIL after them and where they were seen."""
    waits = trace.wait_columns
    mine = np.flatnonzero(waits["thread"] == thread)
    mine = mine[waits["kind"][mine] == WaitKind.CONTENTION]
    begin, end, outcome = (waits[name][mine] for name in ("start_ns", "end_ns", "outcome"))
    end = np.where(outcome == Outcome.OPEN, trace.duration_ns, end)
    gil = trace.gil_waits
    gil = gil[gil["thread"] == thread]
    start = np.concatenate([begin, gil["start_ns"]]).astype(np.int64)
    finish = np.concatenate([end, gil["end_ns"]]).astype(np.int64)
    return start, np.maximum(start, finish)


def _counted(
    trace: Trace,
    thread: int,
    held: Held,
    absent_start: NDArray[np.int64],
    absent_end: NDArray[np.int64],
    began: int,
    ended: int,
    share: float,
) -> Held:
    """Return a share of the holds that were only counted, spread over the thread's free time."""
    counters = trace.counters[trace.counters["thread"] == thread]
    spans = hold_spans(trace)
    spans = spans.where(spans.thread == thread)
    lengths, locks = [], []
    for row in counters:
        lock = int(row["lock"])
        if not capacity(trace, lock):
            continue
        mine = spans.length_ns[spans.lock == lock]
        counted = int(row["acquires"]) - len(mine)
        missing = min(round(share * counted), MOST_COUNTED)
        if missing > 0:
            mean = max(1.0, (float(row["hold_ns"]) - float(mine.sum())) / counted)
            lengths.append(np.full(missing, mean))
            locks.append(np.full(missing, lock, np.int64))
    if not lengths:
        return Held.none()
    length, lock_ids = np.concatenate(lengths), np.concatenate(locks)
    free_start, free_end = _gaps(
        np.concatenate([held.start, absent_start]),
        np.concatenate([held.end, absent_end]),
        began,
        ended,
    )
    room = np.cumsum(free_end - free_start)
    if not len(room) or room[-1] < len(length):
        return Held.none()
    # Locks in turn by their numbers, then side by side with equal gaps, in time that is free.
    turn = np.argsort(np.concatenate([np.arange(len(part)) / len(part) for part in lengths]))
    length, lock_ids = length[turn], lock_ids[turn]
    length *= min(1.0, 0.9 * room[-1] / length.sum())
    gap = (room[-1] - length.sum()) / (len(length) + 1)
    place = np.cumsum(length + gap) - length
    which = np.minimum(np.searchsorted(room, place, side="right"), len(room) - 1)
    start = free_end[which] - (room[which] - place.astype(np.int64))
    end = np.minimum(start + np.maximum(length, 1.0).astype(np.int64), free_end[which])
    fits = end > start
    return Held(start[fits], end[fits], lock_ids[fits], np.full(int(fits.sum()), -1, np.int64))


def _gaps(
    start: NDArray[np.int64], end: NDArray[np.int64], began: int, ended: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return what some spans leave of a stretch of time."""
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order]) if len(end) else end
    free_start = np.concatenate([[began], end]).clip(began, ended)
    free_end = np.concatenate([start, [ended]]).clip(began, ended)
    some = free_end > free_start
    return free_start[some], free_end[some]


def _steps(trace: Trace, thread: int, moments: Moments, lived: float) -> History:
    """Turn moments into steps: what lies between two of them, then what happens."""
    times, kinds, locks, records = moments
    gaps = np.diff(times, prepend=times[:1]).astype(np.float64)
    change = np.zeros((4, len(times)), np.int64)
    pairs = ((_ACQUIRE, _RELEASE), (_OUT, _BACK), (_SLEEP, _AWAKE), (_DOZE, _UP))
    for row, (more, less) in enumerate(pairs):
        change[row] = (kinds == more).astype(np.int64) - (kinds == less).astype(np.int64)
    depth = np.cumsum(change, axis=1)
    out, sleeping, dozing = (np.concatenate([[0], row[:-1]]) for row in depth[1:])
    own = (out == 0) & (sleeping == 0) & (dozing == 0)
    innermost = _innermost(kinds, depth[0])
    stretches = Stretches(
        times - gaps,
        gaps,
        own,
        np.where(innermost >= 0, records[innermost], -1),
        np.where(innermost >= 0, locks[innermost], 0),
    )
    use = time_use(trace, thread, float(gaps[own].sum()) / max(lived, 1e-9))
    spent = own_time(trace, thread, stretches, use)
    awaited = (out == 0) & (sleeping > 0)
    off_core = np.where(awaited | ((out == 0) & (dozing > 0)), gaps, spent.asleep_ns)
    events = np.isin(kinds, (_ACQUIRE, _RELEASE))

    grains = np.clip(np.round(spent.on_core_ns / use.grain_ns), 1, MOST_GRAINS).astype(np.int64)
    grains[(spent.gil <= 0.0) | (spent.gil >= ALL_PYTHON)] = 1
    counts = 2 * grains + 2  # Python and native code by turns, asleep, the event
    first = np.cumsum(counts) - counts
    total = int(counts.sum())
    moment = np.repeat(np.arange(len(times)), counts)
    within = np.arange(total) - first[moment]
    ops = np.zeros(total, OPS)
    is_event, is_sleep = within == counts[moment] - 1, within == counts[moment] - 2
    python = (within % 2 == 0) & ~is_event & ~is_sleep
    share = np.where(python, spent.gil[moment], 1.0 - spent.gil[moment])
    on_core = (spent.on_core_ns / grains)[moment] * share
    ops["ns"] = np.where(is_sleep, off_core[moment], on_core)
    ops["code"] = np.where(is_sleep, Op.SLEEP, Op.COMPUTE)
    ops["flags"] = np.where(python, int(OpFlag.GIL), 0)
    ops["code"][is_event] = np.where(kinds == _ACQUIRE, Op.ACQUIRE, Op.RELEASE)
    ops["flags"][is_event], ops["ns"][is_event] = 0, 0.0
    ops["target"][is_event] = locks
    keep = np.where(is_event, events[moment], ops["ns"] > 0.0)
    owner = np.where(is_event, records[moment], -1)
    owner[is_sleep & awaited[moment]] = AWAITED
    return history_of(thread, ops[keep], owner[keep], use)


def history_of(
    thread: int, ops: NDArray[np.void], holds: NDArray[np.int64], use: TimeUse
) -> History:
    """Return a history of given steps, with the places where it can be cut."""
    acquires = (ops["code"] == Op.ACQUIRE).astype(np.int64)
    depth = np.cumsum(acquires - (ops["code"] == Op.RELEASE))
    cuts = np.unique(np.concatenate([[0], np.flatnonzero(depth == 0) + 1, [len(ops)]]))
    # Elsewhere `ns` is no time: how many locks there are to choose from.
    times = np.where((ops["code"] == Op.ACQUIRE) | (ops["code"] == Op.RELEASE), 0.0, ops["ns"])
    spent = np.concatenate([[0.0], np.cumsum(times)])[cuts]
    return History(thread, ops, holds, cuts.astype(np.int64), spent, use)


def _innermost(kinds: NDArray[np.intp], depth: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for the time before each moment the acquire of the innermost hold, -1 for none."""
    before = np.concatenate([[0], depth[:-1]])
    found = np.full(len(kinds), -1, np.int64)
    for level in range(1, int(depth.max(initial=0)) + 1):
        taken = np.where((kinds == _ACQUIRE) & (depth == level), np.arange(len(kinds)), -1)
        last = np.concatenate([[-1], np.maximum.accumulate(taken)[:-1]])
        found = np.where(before == level, last, found)
    return found
