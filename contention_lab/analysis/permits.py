"""How many permits of a semaphore are out at a time, and who has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contention_lab.analysis.intervals import hold_spans
from contention_lab.analysis.sums import summed

if TYPE_CHECKING:
    from collections.abc import Collection

    from contention_lab.trace import Trace


@dataclass(frozen=True, slots=True, eq=False)
class PermitUse:
    """Recorded holds of semaphores made at one place.

    Attributes
    ----------
    most
        The most permits of one semaphore that were out at a time.
    holders
        How long each thread or task had permits, in nanoseconds.
    """

    most: int
    holders: dict[int, float]

    @property
    def held_s(self) -> float:
        """All holds together, in seconds."""
        return sum(self.holders.values()) / 1e9

    @property
    def largest_share(self) -> float:
        """Share of the one who had permits for the longest."""
        whole = sum(self.holders.values())
        return max(self.holders.values(), default=0.0) / whole if whole else 0.0


def permits(trace: Trace, locks: Collection[int]) -> PermitUse:
    """Return how permits of semaphores were used.

    Parameters
    ----------
    trace
        A trace.
    locks
        Their ids.
    """
    holds = hold_spans(trace)
    holds = holds.where(np.isin(holds.lock, [*locks]) & (holds.length_ns > 0))
    most = 0
    for lock in np.unique(holds.lock).tolist():
        mine = holds.where(holds.lock == lock)
        step = np.repeat([1, -1], len(mine.index))
        order = np.lexsort((step, np.concatenate([mine.start_ns, mine.end_ns])))
        most = max(most, int(np.cumsum(step[order]).max(initial=0)))
    return PermitUse(most, summed(holds.thread, holds.length_ns))


def never_returned(trace: Trace, locks: Collection[int]) -> int:
    """Return how many permits of semaphores threads took, and ended without giving them back.

    A permit that another thread gives back for the one that took it is none of them, nor is one
    that a thread has which goes on to the end of the recording.

    Parameters
    ----------
    trace
        A trace.
    locks
        Their ids.
    """
    gone = [thread.id for thread in trace.threads.values() if thread.end_ns and not thread.is_task]
    kept = 0
    for lock in locks:
        mine = trace.counters[trace.counters["lock"] == lock]
        out = mine["acquires"].astype(np.int64) - mine["hold_histogram"].sum(axis=1).astype(
            np.int64
        )
        of_gone = np.maximum(0, out[np.isin(mine["thread"], gone)]).sum()
        kept += max(0, min(int(of_gone), int(out.sum())))
    return kept
