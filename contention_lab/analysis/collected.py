"""Threads that collect several permits of a semaphore, and who takes permits meanwhile.

A lock for readers and writers can be made from a semaphore: a reader takes one permit, a writer one
after another until it has them all. A semaphore is not fair: a reader that comes back takes the
permit that was just given back before the writer has woken. Who waits for a permit while it has
others is such a writer, however many it wants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contention_lab.analysis.windows import Windows

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from contention_lab.analysis.intervals import Spans


@dataclass(frozen=True, slots=True, eq=False)
class Collected:
    """One thread that waits for a permit while it has others.

    Attributes
    ----------
    lock, thread
        Ids.
    waited
        When it did.
    readers
        Threads that had one permit at a time then, and never waited for another with it.
    entered
        How many permits they took then.
    covered_share
        Share of the time for which at least one of them had one.
    satisfied
        How often the thread had as many permits as were ever out at a time.
    inside
        When readers had permits.
    index
        Waits of the thread, positions in `trace.waits`.
    """

    lock: int
    thread: int
    waited: Windows
    readers: tuple[int, ...]
    entered: int
    covered_share: float
    satisfied: int
    inside: Windows
    index: npt.NDArray[np.int32]


def collected(waits: Spans, holds: Spans) -> Iterator[Collected]:
    """Yield the threads that collect permits.

    Parameters
    ----------
    waits, holds
        All waits for permits of some semaphores, and all times that threads had one.
    """
    for lock in np.unique(waits.lock).tolist():
        waited, held = waits.where(waits.lock == lock), holds.where(holds.lock == lock)
        if not len(held.index):
            continue
        most = _most_at_once(held)
        found: dict[int, tuple[Windows, npt.NDArray[np.int32]]] = {}
        for thread in np.unique(waited.thread).tolist():
            mine, own = waited.where(waited.thread == thread), held.where(held.thread == thread)
            has = Windows.union(own.start_ns, own.end_ns)
            in_need = Windows.union(mine.start_ns, mine.end_ns)
            both = in_need.without(in_need.without(has))
            if both.total_ns:
                found[thread] = both, mine.index
        for thread, (when, index) in found.items():
            others = held.where(~np.isin(held.thread, [*found]))
            inside = Windows.union(others.start_ns, others.end_ns)
            came = when.contains(others.start_ns)
            covered = int(inside.covered_ns(when.start_ns, when.end_ns).sum())
            yield Collected(
                lock=lock,
                thread=thread,
                waited=when,
                readers=tuple(np.unique(others.thread[came]).tolist()),
                entered=int(np.count_nonzero(came)),
                covered_share=covered / when.total_ns,
                satisfied=_times_at(held.where(held.thread == thread), most),
                inside=inside,
                index=index,
            )


def _counts(held: Spans) -> npt.NDArray[np.int64]:
    """Return how many permits are out after each change."""
    step = np.repeat([1, -1], len(held.index))
    order = np.lexsort((step, np.concatenate([held.start_ns, held.end_ns])))
    return np.cumsum(step[order])


def _most_at_once(held: Spans) -> int:
    return int(_counts(held).max(initial=0))


def _times_at(held: Spans, number: int) -> int:
    """Count how often a thread came to have so many permits."""
    counts = _counts(held)
    reached: int = int(np.count_nonzero((counts == number) & (np.diff(counts, prepend=0) > 0)))
    return reached
