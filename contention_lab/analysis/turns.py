"""Who gets a lock next: whether its threads take turns, or one takes it again and again.

A hold is a retake if the same thread had the hold before it and others who had been waiting then
were still waiting. Only holds with waiters are recorded at level `profile`, so a retake needs a
wait that spans the gap between the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contention_lab.analysis.distinct import places
from contention_lab.analysis.overlap import on_one_line

if TYPE_CHECKING:
    import numpy.typing as npt

    from contention_lab.analysis.intervals import Spans
    from contention_lab.trace import Trace


@dataclass(frozen=True, slots=True)
class Turns:
    """How the threads of one lock, or of several made alike, took turns.

    Attributes
    ----------
    hand_overs
        Holds that followed another while somebody was waiting all through.
    retakes
        Of these: by the same thread.
    retaken_in_row
        Of each hand-over that is a retake: how many such are in its row, on average.
    fairness
        Jain's index of how often each thread acquired, from 1 (all alike) to 0 (one thread only),
        of the threads that waited and the one that acquired most.
    owner
        Thread with the most retakes, 0 for none.
    owner_share
        Its share of the retakes.
    overtaken_share
        Share of the waits that ended while somebody waited who had come before.
    """

    hand_overs: int
    retakes: int
    retaken_in_row: float
    fairness: float
    owner: int
    owner_share: float
    overtaken_share: float

    @property
    def retake_share(self) -> float:
        """Share of hand-overs that went back to whoever had the lock."""
        return self.retakes / self.hand_overs if self.hand_overs else 0.0


def turns(trace: Trace, waits: Spans, holds: Spans) -> Turns:
    """Return how threads took turns at some locks.

    Parameters
    ----------
    trace
        The trace.
    waits, holds
        All waits for these locks, and holds of them.
    """
    ids = np.unique(np.concatenate([waits.lock, holds.lock]))
    waits = waits.where(waits.length_ns > 0)
    (line,) = on_one_line((places(ids, holds.lock), holds.start_ns))
    holds = holds.where(np.argsort(line, kind="stable"))
    of_hold, of_wait = places(ids, holds.lock), places(ids, waits.lock)
    same_lock = of_hold[1:] == of_hold[:-1]
    starts, ends, before, after = on_one_line(
        (of_wait, waits.start_ns),
        (of_wait, waits.end_ns),
        (of_hold[1:], holds.end_ns[:-1]),
        (of_hold[1:], holds.start_ns[1:]),
    )
    # Waits for the locks before count in both.
    begun = np.searchsorted(np.sort(starts), before, side="right")
    ended = np.searchsorted(np.sort(ends), after, side="right")
    spanned = same_lock & (begun > ended)
    again = spanned & (holds.thread[1:] == holds.thread[:-1])
    owners, counts = np.unique(holds.thread[1:][again], return_counts=True)
    rows = np.flatnonzero(np.diff(np.concatenate([[False], again, [False]]).astype(np.int8)))
    lengths = rows[1::2] - rows[::2]
    retakes = int(np.count_nonzero(again))
    return Turns(
        hand_overs=int(np.count_nonzero(spanned)),
        retakes=retakes,
        retaken_in_row=float((lengths**2).sum() / retakes) if retakes else 0.0,
        fairness=_fairness(trace, ids, np.unique(waits.thread)),
        owner=int(owners[np.argmax(counts)]) if retakes else 0,
        owner_share=float(counts.max() / retakes) if retakes else 0.0,
        overtaken_share=_overtaken_share(starts, ends),
    )


def _overtaken_share(starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> float:
    """Return the share of waits that began after one that ended later; by lock on one line."""
    if not len(starts):
        return 0.0
    order = np.argsort(ends, kind="stable")
    starts = starts[order]
    earliest = np.minimum.accumulate(starts[::-1])[::-1]
    return float(np.count_nonzero(earliest < starts) / len(starts))


def _fairness(trace: Trace, locks: np.ndarray, waiters: np.ndarray) -> float:
    """Return Jain's index of acquires, stretched so that one thread alone gives 0."""
    counters = trace.counters[np.isin(trace.counters["lock"], locks)]
    threads, which = np.unique(counters["thread"], return_inverse=True)
    acquires = np.bincount(which, weights=counters["acquires"], minlength=len(threads))
    if not len(threads):
        return 1.0
    chosen = np.isin(threads, waiters)
    chosen[int(np.argmax(acquires))] = True
    acquires = acquires[chosen]
    count, square = len(acquires), float((acquires**2).sum())
    if count < 2 or not square:
        return 1.0
    index = float(acquires.sum()) ** 2 / (count * square)
    return (index - 1.0 / count) / (1.0 - 1.0 / count)
