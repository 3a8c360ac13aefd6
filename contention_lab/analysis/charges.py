"""What each hold cost the others: blame, added up over the waits, without a record for each pair.

In a convoy of n threads every wait overlaps n holds, so pairs of waits and holds are many times as
many as events. Where nobody needs to know who waited for whom, it is enough to count who waited at
all: with W(t) the time that all threads together have waited for a lock until t, a hold from a to b
has cost W(b) - W(a). The sums are those of `blame.py`, to the nanosecond.

Where holds of a lock overlap each other (a semaphore) it is the pairs that are added up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contention_lab.analysis.blame import UNRECORDED, holder_gil_ns
from contention_lab.analysis.intervals import hold_spans, lock_waits
from contention_lab.analysis.overlap import PAIR, Line, overlaps
from contention_lab.analysis.readiness import ready_to_run

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy.typing as npt

    from contention_lab.analysis.intervals import Spans
    from contention_lab.trace import Trace

    Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Charges:
    """What holds cost, one entry for each hold that made somebody wait.

    Attributes
    ----------
    hold
        Position in `trace.holds`, or `UNRECORDED`: a wait that names a holder, but overlaps no
        recorded hold. These come last.
    wait
        Of those the position in `trace.waits`. Of holds a wait that began during it and saw what
        the holder was executing, the longest such; -1 if none did.
    lock
        Id.
    ns
        Waiting caused, all threads together, above 0.
    gil_ns
        Of it: while the holder had the lock but not yet the GIL.
    """

    hold: Integers
    wait: Integers
    lock: Integers
    ns: Integers
    gil_ns: Integers


def charges(trace: Trace, locks: Collection[int] | None = None) -> Charges:
    """Add up, for each hold, the waiting it caused.

    Of each lock, the sum of `ns` is the waiting for it without what no hold covers (hand-off).

    Parameters
    ----------
    trace
        The trace.
    locks
        Ids of the locks to look at; all, if it is None.
    """
    waits, holds = lock_waits(trace), hold_spans(trace)
    if locks is not None:
        waits = waits.where(np.isin(waits.lock, np.fromiter(locks, dtype=np.int64)))
    waits = waits.where(waits.length_ns > 0)
    cost = _Cost(trace, waits)
    holds = holds.where((holds.length_ns > 0) & np.isin(holds.lock, waits.lock))
    if len(holds.index) and len(waits.index):
        line = cost.line(waits, holds)
        crowded = np.unique(line.holds.lock[line.crowded()])
        if len(crowded):
            among = np.isin(waits.lock, crowded)
            cost.add_pairs(waits.where(among), holds.where(np.isin(holds.lock, crowded)))
            waits = waits.where(~among)
            line = cost.line(waits, holds.where(np.isin(holds.lock, crowded, invert=True)))
        if len(line.waits.index) and len(line.holds.index):
            cost.add_line(line)
    return cost.charges()


class _Cost:
    """Sums by hold, and which waits overlap a hold."""

    def __init__(self, trace: Trace, waits: Spans) -> None:
        self.trace = trace
        self.waits = waits
        self.ready = ready_to_run(trace)
        self.ns = np.zeros(len(trace.holds), dtype=np.int64)
        self.gil_ns = np.zeros(len(trace.holds), dtype=np.int64)
        self.seen = np.full(len(trace.holds), -1, dtype=np.int64)
        self.overlaps_hold = np.zeros(len(trace.waits), dtype=np.bool_)

    def line(self, waits: Spans, holds: Spans) -> Line:
        """Lay out waits and holds."""
        ready_ns = np.clip(self.ready[holds.index], holds.start_ns, holds.end_ns)
        return Line(waits, holds, ready_ns)

    def add_pairs(self, waits: Spans, holds: Spans) -> None:
        """Add locks whose holds overlap each other."""
        pairs = np.concatenate([*overlaps(waits, holds), np.zeros(0, dtype=PAIR)])
        pairs["wait"] = waits.index[pairs["wait"]]
        pairs["gil_ns"] = holder_gil_ns(self.trace, pairs, self.ready)
        np.add.at(self.ns, pairs["hold"], pairs["ns"])
        np.add.at(self.gil_ns, pairs["hold"], pairs["gil_ns"])
        self.overlaps_hold[pairs["wait"]] = True
        self._see(pairs["wait"].astype(np.int64), pairs["hold"].astype(np.int64), pairs["ns"])

    def add_line(self, line: Line) -> None:
        """Add locks that have one hold at a time."""
        waits, holds = line.waits, line.holds
        waited = _Waited(line)
        before = waited.until(line.hold_start, holds.start_ns)
        ns = waited.until(line.hold_end, holds.end_ns) - before
        late = line.ready_ns > holds.start_ns
        gil_ns = np.zeros(len(ns), dtype=np.int64)
        gil_ns[late] = waited.until(line.ready[late], line.ready_ns[late]) - before[late]
        # The hold that a wait led to may start a little early by the clock of another core.
        last = np.searchsorted(line.hold_start, line.wait_end, side="left") - 1
        last_own = (
            (last >= 0)
            & (line.lock_of_hold[last] == line.lock_of_wait)
            & (holds.thread[last] == waits.thread)
            & (waits.start_ns < holds.start_ns[last])
            & (waits.end_ns < holds.end_ns[last])
        )
        own = last[last_own]
        early_ns = waits.end_ns[last_own] - holds.start_ns[own]
        np.subtract.at(ns, own, early_ns)
        np.subtract.at(gil_ns, own, np.minimum(early_ns, line.ready_ns[own] - holds.start_ns[own]))
        self.ns[holds.index], self.gil_ns[holds.index] = ns, gil_ns
        first = np.searchsorted(line.hold_end, line.wait_start, side="right")
        until = last + 1 - last_own
        self.overlaps_hold[waits.index] = until > first
        begun = np.flatnonzero(until > first)
        hold = holds.index[first[begun]]
        wait = waits.index[begun]
        shared = np.minimum(waits.end_ns[begun], holds.end_ns[first[begun]]) - waits.start_ns[begun]
        self._see(wait, hold, shared)

    def _see(self, wait: Integers, hold: Integers, ns: Integers) -> None:
        """Note which wait saw what a holder was executing."""
        records, held = self.trace.waits, self.trace.holds
        sight = (
            (records["holder_stack"][wait] != 0)
            & (records["holder"][wait] == held["thread"][hold])
            & (held["start_ns"][hold] <= records["start_ns"][wait])
        )
        order = np.argsort(ns[sight], kind="stable")
        self.seen[hold[sight][order]] = wait[sight][order]

    def charges(self) -> Charges:
        """Return what was added up, and the waits that overlap no hold but name a holder."""
        lost = ~self.overlaps_hold[self.waits.index]
        lost &= self.trace.waits["holder"][self.waits.index] != 0
        waits = self.waits.where(lost)
        hold = np.flatnonzero(self.ns)
        none = np.zeros(len(waits.index), dtype=np.int64)
        return Charges(
            hold=np.concatenate([hold, none + UNRECORDED]),
            wait=np.concatenate([self.seen[hold], waits.index]),
            lock=np.concatenate([self.trace.holds["lock"][hold].astype(np.int64), waits.lock]),
            ns=np.concatenate([self.ns[hold], waits.length_ns]),
            gil_ns=np.concatenate([self.gil_ns[hold], none]),
        )


class _Waited:
    """How long all threads together have waited until a moment, by lock.

    Times are added up modulo 2^64; only differences are used, and they fit.
    """

    def __init__(self, line: Line) -> None:
        self._sides = [
            _sorted_sums(line.wait_start, line.waits.start_ns),
            _sorted_sums(line.wait_end, line.waits.end_ns),
        ]

    def until(self, key: Integers, time_ns: Integers) -> Integers:
        """Return it, plus a number that is the same for all moments of a lock."""
        begun, ended = (
            (at * time_ns) - sums[at]
            for keys, sums in self._sides
            for at in (np.searchsorted(keys, key, side="right"),)
        )
        difference: Integers = begun - ended
        return difference


def _sorted_sums(keys: Integers, times: Integers) -> tuple[Integers, Integers]:
    """Return keys in order, and for each number of them the sum of their times."""
    order = np.argsort(keys, kind="stable")
    sums = np.zeros(len(keys) + 1, dtype=np.int64)
    np.cumsum(times[order], out=sums[1:])
    return keys[order], sums
