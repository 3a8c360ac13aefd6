"""The search behind blame: which holds overlap which waits of the same lock, and for how long.

It does not know what a wait or a hold means; `blame.py` does.

Everything is whole-array arithmetic. The times of all locks are put on one line, one lock after
the other, so that one sorted search serves all of them. Where the holds of a lock never overlap
each other (a mutex), those that overlap a wait are neighbours on the line. Where they do (a
semaphore), the search is repeated for each octave of their length: holds of about one length that
start within about that length of each other are few, so a search finds few that do not overlap,
however long other holds are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from contention_lab.analysis.intervals import Spans
    from contention_lab.trace import Records

    Integers = npt.NDArray[np.int64]

PAIR: Final = np.dtype([("wait", "<i4"), ("hold", "<i4"), ("ns", "<i8"), ("gil_ns", "<i8")])
BLOCK_PAIRS: Final = 1 << 20
"""Pairs worked on at a time: bounds temporary memory."""


def overlaps(waits: Spans, holds: Spans) -> Iterator[Records]:
    """Yield the shares of waits that fall to holds of the same lock.

    Parameters
    ----------
    waits, holds
        Spans of a length above 0.

    Yields
    ------
    Records
        Arrays of `PAIR`: `wait` is a position in `waits`, `hold` an `index` of `holds`, `gil_ns`
        is 0. Of one wait, the shares are at most as long as the overlaps, and together exactly as
        long as the time that any hold covers.
    """
    line = Line(waits, holds)
    crowded = line.crowded()
    yield from _shares_alone(line, np.flatnonzero(~crowded))
    if crowded.any():
        octave = np.frexp(line.holds.length_ns.astype(np.float64))[1]
        found = [
            pairs
            for size in np.unique(octave[crowded])
            for pairs in line.pairs(np.flatnonzero(crowded & (octave == size)))
        ]
        yield _shares_together(line, np.concatenate(found))
    else:
        yield np.zeros(0, dtype=PAIR)


def on_one_line(*columns: tuple[npt.NDArray[np.intp], Integers]) -> list[Integers]:
    """Return times as positions on one line, on which groups follow one another.

    Parameters
    ----------
    columns
        Pairs of a group number from 0 and a time from 0 for each record.

    Returns
    -------
    list
        Positions, int64, one array for each pair. They keep the order of groups, and within a
        group that of times; distances are those of the times where 64 bits suffice.
    """
    length = 1 + max(int(times.max(initial=0)) for _, times in columns)
    groups = 1 + max(int(group.max(initial=0)) for group, _ in columns)
    if length * groups < 1 << 62:
        return [group * length + times for group, times in columns]
    distinct = np.unique(np.concatenate([times for _, times in columns]))
    return [group * len(distinct) + np.searchsorted(distinct, times) for group, times in columns]


class Line:
    """Waits and holds of all locks on one line of time.

    Parameters
    ----------
    waits, holds
        Spans of a length above 0.
    ready_ns
        A moment within each hold that is wanted on the line, too.

    Attributes
    ----------
    waits
        As given.
    holds, ready_ns
        Sorted by lock, then start of the hold.
    wait_start, wait_end, hold_start, hold_end, ready
        Positions on the line, int64, in these orders.
    lock_of_wait, lock_of_hold
        The number of the lock on the line, from 0.
    """

    def __init__(self, waits: Spans, holds: Spans, ready_ns: Integers | None = None) -> None:
        locks = np.unique(np.concatenate([waits.lock, holds.lock]))
        lock_of_wait = np.searchsorted(locks, waits.lock)
        lock_of_hold = np.searchsorted(locks, holds.lock)
        order = np.lexsort((holds.start_ns, lock_of_hold))
        self.waits = waits
        self.holds = holds.where(order)
        self.lock_of_wait = lock_of_wait
        self.lock_of_hold = lock_of_hold[order]
        self.ready_ns = self.holds.start_ns if ready_ns is None else ready_ns[order]
        self.wait_start, self.wait_end, self.hold_start, self.hold_end, *rest = on_one_line(
            (lock_of_wait, waits.start_ns),
            (lock_of_wait, waits.end_ns),
            (self.lock_of_hold, self.holds.start_ns),
            (self.lock_of_hold, self.holds.end_ns),
            *(() if ready_ns is None else ((self.lock_of_hold, self.ready_ns),)),
        )
        self.ready = rest[0] if rest else self.hold_start

    def crowded(self) -> npt.NDArray[np.bool_]:
        """Tell for each hold whether holds of its lock overlap each other."""
        early = self.hold_start[1:] < np.maximum.accumulate(self.hold_end)[:-1]
        return np.isin(self.lock_of_hold, self.lock_of_hold[1:][early])

    def pairs(self, chosen: npt.NDArray[np.intp]) -> Iterator[Records]:
        """Yield overlaps with the chosen holds, by wait; `hold` is a position in `holds`.

        A hold that this very wait led to may start a little early by the clock of another core:
        it is not what the thread waited for.
        """
        waits = self.waits
        reach = np.maximum.accumulate(self.hold_end[chosen])
        first = np.searchsorted(reach, self.wait_start, side="right")
        last = np.searchsorted(self.hold_start[chosen], self.wait_end, side="left")
        count = np.maximum(0, last - first)
        total = np.cumsum(count)
        begin = 0
        while begin < len(count):
            before = int(total[begin - 1]) if begin else 0
            end = int(np.searchsorted(total, before + BLOCK_PAIRS, side="right"))
            end = max(end, begin + 1)
            counts = count[begin:end]
            wait = np.repeat(np.arange(begin, end), counts)
            step = np.arange(len(wait)) - np.repeat(np.cumsum(counts) - counts, counts)
            hold = chosen[np.repeat(first[begin:end], counts) + step]
            ns = np.minimum(waits.end_ns[wait], self.holds.end_ns[hold]) - np.maximum(
                waits.start_ns[wait], self.holds.start_ns[hold]
            )
            own = (
                (waits.thread[wait] == self.holds.thread[hold])
                & (waits.start_ns[wait] < self.holds.start_ns[hold])
                & (waits.end_ns[wait] < self.holds.end_ns[hold])
            )
            real = (ns > 0) & ~own
            pairs = np.zeros(np.count_nonzero(real), dtype=PAIR)
            pairs["wait"], pairs["hold"], pairs["ns"] = wait[real], hold[real], ns[real]
            yield pairs
            begin = end

    def covered_ns(self) -> Integers:
        """Return for each wait how much of it any hold covers."""
        reach = np.maximum.accumulate(self.hold_end)
        fresh = np.ones(len(reach), dtype=np.bool_)
        fresh[1:] = self.hold_start[1:] >= reach[:-1]
        begin = np.flatnonzero(fresh)
        start_ns = self.holds.start_ns[begin]
        length_ns = np.maximum.reduceat(self.holds.end_ns, begin) - start_ns
        before_ns = np.cumsum(length_ns) - length_ns
        lock = self.lock_of_hold[begin]

        def covered_until(key: Integers, time_ns: Integers) -> Integers:
            at = np.searchsorted(self.hold_start[begin], key, side="right") - 1
            inside = np.where(
                lock[at] == self.lock_of_wait,
                np.minimum(length_ns[at], time_ns - start_ns[at]),
                length_ns[at],
            )
            return np.where(at < 0, 0, before_ns[at] + inside)

        return covered_until(self.wait_end, self.waits.end_ns) - covered_until(
            self.wait_start, self.waits.start_ns
        )


def _shares_alone(line: Line, chosen: npt.NDArray[np.intp]) -> Iterator[Records]:
    """Yield shares where one hold at a time is possible: the overlaps themselves."""
    for pairs in line.pairs(chosen):
        pairs["hold"] = line.holds.index[pairs["hold"]]
        yield pairs


def _shares_together(line: Line, pairs: Records) -> Records:
    """Return shares in proportion to overlaps that may overlap each other."""
    if not len(pairs):
        return pairs
    pairs = pairs[np.lexsort((pairs["hold"], pairs["wait"]))]
    first = np.flatnonzero(np.diff(pairs["wait"], prepend=-1))
    count = np.diff(first, append=len(pairs))
    running = np.cumsum(pairs["ns"])
    before = running[first] - pairs["ns"][first]
    overlap = np.add.reduceat(pairs["ns"], first)
    # An early hold of one's own is covered time that nobody is to blame for.
    shared = np.minimum(overlap, line.covered_ns()[pairs["wait"][first]])
    # Rounding the running share instead of each share makes the sum exact.
    within = running - np.repeat(before, count)
    until = np.floor(within * np.repeat(shared / overlap, count)).astype(np.int64)
    until = np.clip(until, 0, np.repeat(shared, count))
    last = np.append(first[1:], len(pairs)) - 1
    until[last] = shared
    pairs["ns"] = np.diff(until, prepend=0)
    pairs["ns"][first] = until[first]
    pairs["hold"] = line.holds.index[pairs["hold"]]
    return pairs[pairs["ns"] > 0]
