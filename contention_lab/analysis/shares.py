"""Of each moment, the share of one holder where several hold a lock at a time: one n-th of n.

With N(t) the time until t, each moment divided by the number of holders then, a holder from a to b
has had N(b) - N(a) of a wait that lasts all through. So what a hold has to do with a wait, and
with all waits together, is a difference of sums, however many pairs of them there are.

Shares are whole numbers of a 256th of a nanosecond: they add up exactly, in any order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.distinct import distinct
from contention_lab.analysis.overlap import on_one_line

if TYPE_CHECKING:
    import numpy.typing as npt

    from contention_lab.analysis.overlap import Line

    Integers = npt.NDArray[np.int64]

UNITS: Final = 256
"""To a nanosecond."""


class Shares:
    """The share of one holder until the times of a line.

    Parameters
    ----------
    line
        Waits and holds.

    Attributes
    ----------
    wait_start, wait_end, hold_start, hold_end, ready
        N at these times of the line, in 256ths of a nanosecond, int64.
    own_wait, own_hold
        Positions of waits, and of the holds that they led to where these start early by the clock
        of another core: nobody is to blame for their share.
    own_units
        That share.
    covered_ns
        For each wait, how much of it any hold covers, without what nobody is to blame for.
    """

    def __init__(self, line: Line) -> None:
        key = np.concatenate([line.hold_start, line.hold_end])
        order = np.argsort(key, kind="stable")
        time = np.concatenate([line.holds.start_ns, line.holds.end_ns])[order]
        self._key = key[order]
        del key
        self._holders = np.where(order < len(line.hold_start), np.int32(1), np.int32(-1))
        np.cumsum(self._holders, out=self._holders)
        del order
        # Between two holders of different locks there is none.
        units = np.diff(time, append=time[-1:]) * (self._holders > 0) * float(UNITS)
        units /= np.maximum(self._holders, 1)
        self._units = np.zeros(len(units), dtype=np.int64)
        self._units[1:] = np.rint(np.cumsum(units[:-1]))
        self._time = time
        waits, holds = line.waits, line.holds
        self.wait_start = self._until(line.wait_start, waits.start_ns)
        self.wait_end = self._until(line.wait_end, waits.end_ns)
        self.hold_start = self._until(line.hold_start, holds.start_ns)
        self.hold_end = self._until(line.hold_end, holds.end_ns)
        is_late = line.ready is not line.hold_start
        self.ready = self._until(line.ready, line.ready_ns) if is_late else self.hold_start
        self.own_wait, self.own_hold = _own(line)
        self.own_units = self.wait_end[self.own_wait] - self.hold_start[self.own_hold]
        self.covered_ns = line.covered_ns()
        early = np.zeros(len(self.covered_ns), dtype=np.int64)
        np.add.at(early, self.own_wait, self.own_units)
        self.covered_ns -= np.rint(early / UNITS).astype(np.int64)
        np.maximum(self.covered_ns, 0, out=self.covered_ns)
        del self._key, self._time, self._units, self._holders

    def _until(self, key: Integers, time_ns: Integers) -> Integers:
        at = np.searchsorted(self._key, key, side="right") - 1
        first = np.maximum(at, 0)
        holders = self._holders[first]
        part = np.where((at >= 0) & (holders > 0), time_ns - self._time[first], 0) * float(UNITS)
        part /= np.maximum(holders, 1)
        found = self._units[first]
        found += np.rint(part).astype(np.int64)
        return found


def _own(line: Line) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the waits, and the holds that they led to, where these begin before the wait ends."""
    # Of one thread few holds begin during a wait of its own for the same lock.
    waits, holds = line.waits, line.holds
    lock, thread = (
        np.concatenate(pair).astype(np.int64)
        for pair in ((line.lock_of_hold, line.lock_of_wait), (holds.thread, waits.thread))
    )
    user = distinct(lock, thread)[1]
    of_hold, of_wait = user[: len(line.lock_of_hold)], user[len(line.lock_of_hold) :]
    order = np.argsort(of_hold, kind="stable")  # and by start, as holds on a line are
    starts, begin, end = on_one_line(
        (of_hold[order], holds.start_ns[order]), (of_wait, waits.start_ns), (of_wait, waits.end_ns)
    )
    first = np.searchsorted(starts, begin, side="right")
    count = np.searchsorted(starts, end, side="left") - first
    np.maximum(count, 0, out=count)
    wait = np.repeat(np.arange(len(count)), count)
    step = np.arange(len(wait)) - np.repeat(np.cumsum(count) - count, count)
    hold = order[np.repeat(first, count) + step]
    early = waits.end_ns[wait] < holds.end_ns[hold]
    return wait[early], hold[early]
