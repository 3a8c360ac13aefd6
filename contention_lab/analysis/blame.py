"""Blame: every wait for a lock, divided over the holds that made it wait.

A wait lasts from the first failed try until the lock is ours. Each hold of the same lock that
overlaps it gets the time of the overlap; what no hold covers (between a release and the next
acquire, or under a hold that was not recorded) is "hand-off". Where holds overlap each other, as
those of a semaphore do, each moment is divided evenly among those who hold it then. The parts of a
wait always add up to the wait, to the nanosecond.

A thread that has waited for a lock and got it may have to wait for the GIL before it can go on.
Meanwhile it holds the lock, but its code is not to blame: that part of a pair is told apart.

It names records, not code: `block_matrix` and `flame` turn records into frames. The chain from a
holder that was itself waiting to the root is not followed here.

There is no loop over events; `overlap.py` has the search, `pairs.py` what falls to whom.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.intervals import hold_spans, lock_waits
from contention_lab.analysis.overlap import PAIR
from contention_lab.analysis.pairs import overlaps
from contention_lab.analysis.readiness import ready_to_run

if TYPE_CHECKING:
    from contention_lab.trace import Records, Trace

HAND_OFF: Final = -1
"""No recorded hold covers this part of the wait."""
UNRECORDED: Final = -2
"""No recorded hold overlaps the wait at all; the wait itself names a holder, see its `holder`."""


@dataclass(frozen=True, slots=True)
class Blame:
    """All waiting for locks, in parts.

    Attributes
    ----------
    pairs
        Structured array: `wait` (position in `trace.waits`), `hold` (position in `trace.holds`,
        `HAND_OFF` or `UNRECORDED`), `ns` (int64, above 0), and of that `gil_ns`, during which the
        holder had the lock but not yet the GIL. Ordered by wait, then time, with what no hold
        covers last. The sum of `ns` over a wait is its `end_ns - gil_ns - start_ns`.
    """

    pairs: Records

    @property
    def total_ns(self) -> int:
        """Return all waiting, in nanoseconds."""
        return int(self.pairs["ns"].sum())

    @property
    def unexplained_ns(self) -> int:
        """Return the waiting that no recorded hold covers, in nanoseconds."""
        return int(self.pairs["ns"][self.pairs["hold"] < 0].sum())

    @property
    def gil_ns(self) -> int:
        """Return the waiting for holders that themselves waited for the GIL, in nanoseconds."""
        return int(self.pairs["gil_ns"].sum())


def blame(trace: Trace) -> Blame:
    """Divide every contended wait over the holds it overlaps.

    Waits for events and items (`WaitKind.COORDINATION`) are not among them.
    """
    waits, holds = lock_waits(trace), hold_spans(trace)
    waits = waits.where(waits.length_ns > 0)
    holds = holds.where((holds.length_ns > 0) & np.isin(holds.lock, waits.lock))
    ready_ns = np.clip(ready_to_run(trace)[holds.index], holds.start_ns, holds.end_ns)
    found = list(overlaps(waits, holds, ready_ns))
    wait = np.concatenate([part["wait"] for part in found])
    blamed = np.zeros(len(waits.index), dtype=np.int64)
    np.add.at(blamed, wait, np.concatenate([part["ns"] for part in found]))
    left = waits.length_ns - blamed
    alone = np.bincount(wait, minlength=len(left)) == 0
    named = trace.wait_columns["holder"][waits.index] != 0
    rest = np.zeros(np.count_nonzero(left), dtype=PAIR)
    rest["wait"] = np.flatnonzero(left)
    rest["hold"] = np.where(alone & named, UNRECORDED, HAND_OFF)[left > 0]
    rest["ns"] = left[left > 0]
    pairs = np.concatenate([*found, rest])
    del found, wait, blamed, left, alone, rest  # as large as the result, which is ordered next
    pairs = pairs[np.argsort(pairs["wait"], kind="stable")]
    pairs["wait"] = waits.index[pairs["wait"]]
    pairs.setflags(write=False)
    return Blame(pairs)
