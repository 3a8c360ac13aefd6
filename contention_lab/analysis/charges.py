"""What each hold cost the others: blame, added up over the waits, without a record for each pair.

In a convoy of n threads every wait overlaps n holds, so pairs of waits and holds are many times as
many as events. Where nobody needs to know who waited for whom, it is enough to count who waited at
all: with W(t) the time that all threads together have waited for a lock until t, a hold from a to b
has cost W(b) - W(a). The sums are those of `blame.py`, to the nanosecond.

Where holds of a lock overlap each other (a semaphore) it is W that is added up over N(t), the time
divided by the number of holders (see `shares.py`): a hold from a to b has cost the integral of W
over N from a to b. The sum over a lock is that of `blame.py`, to the nanosecond; of one hold both
differ by less than a nanosecond for each wait, since there each pair is a whole number of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.blame import UNRECORDED
from contention_lab.analysis.distinct import among, distinct, values
from contention_lab.analysis.intervals import hold_spans, lock_waits
from contention_lab.analysis.overlap import Line, on_one_line
from contention_lab.analysis.readiness import ready_to_run
from contention_lab.analysis.shares import UNITS, Shares

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy.typing as npt

    from contention_lab.analysis.intervals import Spans
    from contention_lab.trace import Trace

    Integers = npt.NDArray[np.int64]


BLOCK: Final = 1 << 18
"""Holds worked on at a time: bounds temporary memory."""


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

    hold: npt.NDArray[np.int32]
    wait: npt.NDArray[np.int32]
    lock: npt.NDArray[np.uint32]
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
        waits = waits.where(among(waits.lock, np.fromiter(locks, dtype=np.int64)))
    waits = waits.where(waits.length_ns > 0)
    cost = _Cost(trace, waits)
    holds = holds.where((holds.length_ns > 0) & among(holds.lock, values(waits.lock)))
    if len(holds.index) and len(waits.index):
        line = cost.line(waits, holds)
        crowded = np.unique(line.holds.lock[line.crowded()])
        if len(crowded):
            wait_is, hold_is = among(waits.lock, crowded), among(holds.lock, crowded)
            cost.add_shared(cost.line(waits.where(wait_is), holds.where(hold_is)))
            waits = waits.where(~wait_is)
            line = cost.line(waits, holds.where(~hold_is))
        if len(line.waits.index) and len(line.holds.index):
            cost.add_line(line)
    return cost.charges()


class _Cost:
    """Sums by hold, and which waits overlap a hold."""

    def __init__(self, trace: Trace, waits: Spans) -> None:
        self.trace = trace
        self.waits = waits
        self.ready = ready_to_run(trace)
        self.is_late = self.ready is not hold_spans(trace).start_ns
        # Memory that is never written to takes none.
        self.ns, self.gil_ns, self.longest = np.zeros((3, len(trace.hold_columns)), dtype=np.int64)
        self.seen = np.full(len(trace.hold_columns), -1, dtype=np.int32)
        self.overlaps_hold = np.zeros(len(trace.wait_columns), dtype=np.bool_)

    def line(self, waits: Spans, holds: Spans) -> Line:
        """Lay out waits and holds."""
        if not self.is_late:
            return Line(waits, holds)
        ready_ns = np.clip(self.ready[holds.index], holds.start_ns, holds.end_ns)
        return Line(waits, holds, ready_ns)

    def add_shared(self, line: Line) -> None:
        """Add locks whose holds overlap each other: see `shares.py`."""
        shares = Shares(line)
        waits, holds = line.waits, line.holds
        self.overlaps_hold[waits.index] = shares.covered_ns > 0
        late = np.flatnonzero(line.ready_ns > holds.start_ns)
        before, units, until_ready = _waited(
            (line.wait_start, shares.wait_start),
            (line.wait_end, shares.wait_end),
            (line.hold_start, shares.hold_start),
            (line.hold_end, shares.hold_end),
            (line.ready[late], shares.ready[late]),
        )
        units -= before
        gil_units = np.zeros(len(units), dtype=np.int64)
        gil_units[late] = until_ready - before[late]
        del before
        own, early = shares.own_hold, shares.own_units
        np.subtract.at(units, own, early)
        np.subtract.at(
            gil_units, own, np.minimum(early, shares.ready[own] - shares.hold_start[own])
        )
        ns = _rounded(line, units, shares.covered_ns)
        self.ns[holds.index] = ns
        if len(late):
            self.gil_ns[holds.index] = np.clip(gil_units // UNITS, 0, ns)
        self._see_shared(line, shares)

    def _see_shared(self, line: Line, shares: Shares) -> None:
        """Note which wait saw what the holder that it names was executing."""
        named = self.trace.wait_columns["holder"][line.waits.index]
        stack = self.trace.wait_columns["holder_stack"][line.waits.index]
        wait = np.flatnonzero((named != 0) & (stack != 0))
        if not len(wait):
            return
        users, which = distinct(
            np.concatenate([line.lock_of_hold, line.lock_of_wait[wait]]).astype(np.int64),
            np.concatenate([line.holds.thread, named[wait]]).astype(np.int64),
        )
        del users
        count = len(line.lock_of_hold)
        starts, begun = on_one_line(
            (which[:count], line.holds.start_ns), (which[count:], line.waits.start_ns[wait])
        )
        order = np.argsort(starts, kind="stable")
        at = np.searchsorted(starts[order], begun, side="right") - 1
        hold = order[np.maximum(at, 0)]
        good = (at >= 0) & (which[hold] == which[count:])
        good &= line.waits.start_ns[wait] < line.holds.end_ns[hold]
        wait, hold = wait[good], hold[good]
        units = np.minimum(shares.wait_end[wait], shares.hold_end[hold]) - shares.wait_start[wait]
        self._see(line.waits.index[wait], line.holds.index[hold], units)

    def add_line(self, line: Line) -> None:
        """Add locks that have one hold at a time."""
        waits, holds = line.waits, line.holds
        late = np.flatnonzero(line.ready_ns > holds.start_ns)
        before, ns, until_ready = _waited(
            (line.wait_start, waits.start_ns),
            (line.wait_end, waits.end_ns),
            (line.hold_start, holds.start_ns),
            (line.hold_end, holds.end_ns),
            (line.ready[late], line.ready_ns[late]),
        )
        ns -= before
        gil_ns = np.zeros(len(ns), dtype=np.int64)
        gil_ns[late] = until_ready - before[late]
        del before
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
        self.ns[holds.index] = ns
        if len(late):
            self.gil_ns[holds.index] = gil_ns
        del ns, gil_ns
        first = np.searchsorted(line.hold_end, line.wait_start, side="right")
        until = last + 1 - last_own
        self.overlaps_hold[waits.index] = until > first
        begun = np.flatnonzero(until > first)
        hold = holds.index[first[begun]]
        wait = waits.index[begun]
        shared = np.minimum(waits.end_ns[begun], holds.end_ns[first[begun]]) - waits.start_ns[begun]
        self._see(wait, hold, shared)

    def _see(self, wait: npt.NDArray[np.int32], hold: npt.NDArray[np.int32], ns: Integers) -> None:
        """Note which wait saw what a holder was executing."""
        records, held = self.trace.wait_columns, self.trace.hold_columns
        sight = (
            (records["holder_stack"][wait] != 0)
            & (records["holder"][wait] == held["thread"][hold])
            & (held["start_ns"][hold] <= records["start_ns"][wait])
        )
        wait, hold, ns = wait[sight], hold[sight], ns[sight]
        np.maximum.at(self.longest, hold, ns)
        most = ns == self.longest[hold]  # of equals, the last
        self.seen[hold[most]] = wait[most]

    def charges(self) -> Charges:
        """Return what was added up, and the waits that overlap no hold but name a holder."""
        lost = ~self.overlaps_hold[self.waits.index]
        lost &= self.trace.wait_columns["holder"][self.waits.index] != 0
        waits = self.waits.where(lost)
        hold = np.flatnonzero(self.ns).astype(np.int32)
        none = np.zeros(len(waits.index), dtype=np.int32)
        return Charges(
            hold=np.concatenate([hold, none + UNRECORDED]),
            wait=np.concatenate([self.seen[hold], waits.index]),
            lock=np.concatenate([self.trace.hold_columns["lock"][hold], waits.lock]),
            ns=np.concatenate([self.ns[hold], waits.length_ns]),
            gil_ns=np.concatenate([self.gil_ns[hold], none]),
        )


def _rounded(line: Line, units: Integers, covered_ns: Integers) -> Integers:
    """Return shares in nanoseconds, which add up to what holds cover of all waits for a lock."""
    locks = 1 + int(max(line.lock_of_hold.max(), line.lock_of_wait.max()))
    whole = np.zeros(locks, dtype=np.int64)
    np.add.at(whole, line.lock_of_wait, covered_ns)
    first = np.flatnonzero(np.diff(line.lock_of_hold.astype(np.int64), prepend=-1))
    count = np.diff(first, append=len(units))
    wanted = whole[line.lock_of_hold[first]]
    # Rounding the running sum instead of each share makes the sum exact.
    exact = units / UNITS
    running = np.cumsum(exact)
    within = running - np.repeat(running[first] - exact[first], count)
    last = np.append(first[1:], len(units)) - 1
    scale = np.where(within[last] > 0, wanted / np.maximum(within[last], 1.0 / UNITS), 0.0)
    until = np.rint(within * np.repeat(scale, count)).astype(np.int64)
    np.clip(until, 0, np.repeat(wanted, count), out=until)
    until[last] = wanted
    ns: Integers = np.diff(until, prepend=0)
    ns[first] = until[first]
    return ns


def _waited(
    starts: tuple[Integers, Integers],
    ends: tuple[Integers, Integers],
    *moments: tuple[Integers, Integers],
) -> list[Integers]:
    """Return how long all threads together have waited until some moments, by lock.

    To each is added a number that is the same for all moments of a lock. Times are added up modulo
    2^64; only differences are used, and they fit.

    Parameters
    ----------
    starts, ends
        Of the waits: positions on the line, and times, of whatever clock.
    moments
        Positions on the line, and their times by the same clock.
    """
    found: list[Integers] = [np.zeros(len(key), dtype=np.int64) for key, _ in moments]
    for sign, (keys, times) in ((1, starts), (-1, ends)):
        order = np.argsort(keys, kind="stable")
        keys, sums = keys[order], np.zeros(len(keys) + 1, dtype=np.int64)
        np.cumsum(times[order], out=sums[1:])
        del order
        for whole, (key, time_ns) in zip(found, moments, strict=True):
            for begin in range(0, len(key), BLOCK):
                part = slice(begin, begin + BLOCK)
                at = np.searchsorted(keys, key[part], side="right")
                whole[part] += sign * (at * time_ns[part] - sums[at])
    return found
