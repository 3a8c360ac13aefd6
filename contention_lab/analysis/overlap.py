"""The search behind blame: which holds overlap which waits of the same lock.

It does not know what a wait or a hold means; `blame.py` does.

Everything is whole-array arithmetic. The times of all locks are put on one line, one lock after
the other, so that one sorted search serves all of them. Where the holds of a lock never overlap
each other (a mutex), those that overlap a wait are neighbours on the line. Where they do (a
semaphore), the search is repeated for each octave of their length: holds of about one length that
start within about that length of each other are few, so a search finds few that do not overlap,
however long other holds are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.analysis.distinct import among, places, values

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from contention_lab.analysis.intervals import Spans
    from contention_lab.trace import Records

    Integers = npt.NDArray[np.int64]

PAIR: Final = np.dtype([("wait", "<i4"), ("hold", "<i4"), ("ns", "<i8"), ("gil_ns", "<i8")])
BLOCK_WAITS: Final = 1 << 17
BLOCK_PAIRS: Final = 1 << 20
"""Pairs worked on at a time: bounds temporary memory."""


def on_one_line(*columns: tuple[npt.NDArray[np.integer[Any]], Integers]) -> list[Integers]:
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
    if groups == 1:
        return [times for _, times in columns]
    if length * groups < 1 << 62:
        return [_beyond(group, length, times) for group, times in columns]
    distinct = np.unique(np.concatenate([times for _, times in columns]))
    return [
        _beyond(group, len(distinct), np.searchsorted(distinct, times)) for group, times in columns
    ]


def _beyond(group: npt.NDArray[np.integer[Any]], length: int, times: Integers) -> Integers:
    position: Integers = np.multiply(group, np.int64(length), dtype=np.int64)
    position += times
    return position


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
        locks = np.union1d(values(waits.lock), values(holds.lock))
        lock_of_wait, lock_of_hold = places(locks, waits.lock), places(locks, holds.lock)
        (starts,) = on_one_line((lock_of_hold, holds.start_ns))
        if not _is_sorted(starts):
            # Sorting by small numbers is fast, and most locks are written in the order of time.
            order = np.argsort(lock_of_hold, kind="stable")
            if not _is_sorted(starts[order]):
                order = order[np.argsort(starts[order], kind="stable")]
            holds, lock_of_hold = holds.where(order), lock_of_hold[order]
            ready_ns = None if ready_ns is None else ready_ns[order]
        self.waits = waits
        self.holds = holds
        self.lock_of_wait = lock_of_wait
        self.lock_of_hold = lock_of_hold
        self.ready_ns = self.holds.start_ns if ready_ns is None else ready_ns
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
        if not early.any():
            return np.zeros(len(self.hold_start), dtype=np.bool_)
        return among(self.lock_of_hold, self.lock_of_hold[1:][early])

    def pairs(self, *searched: Searched) -> Iterator[Records]:
        """Yield overlaps with some holds, all those of a wait together; `hold` is as in `holds`.

        A hold that this very wait led to may start a little early by the clock of another core:
        it is not what the thread waited for.
        """
        for start in range(0, len(self.wait_start), BLOCK_WAITS):
            stop = min(start + BLOCK_WAITS, len(self.wait_start))
            bounds = [
                one.bounds(self.wait_start[start:stop], self.wait_end[start:stop])
                for one in searched
            ]
            total = np.cumsum(sum(np.maximum(0, last - first) for first, last in bounds))
            begin = 0
            while begin < stop - start:
                before = int(total[begin - 1]) if begin else 0
                end = int(np.searchsorted(total, before + BLOCK_PAIRS, side="right"))
                end = max(end, begin + 1)
                found = [
                    self._overlaps(one.chosen, start + begin, first[begin:end], last[begin:end])
                    for one, (first, last) in zip(searched, bounds, strict=True)
                ]
                yield found[0] if len(found) == 1 else np.concatenate(found)
                begin = end

    def _overlaps(
        self, chosen: npt.NDArray[np.intp], begin: int, first: Integers, last: Integers
    ) -> Records:
        """Return the overlaps of successive waits with neighbours among chosen holds."""
        waits, counts = self.waits, np.maximum(0, last - first)
        wait = np.repeat(np.arange(begin, begin + len(counts)), counts)
        step = np.arange(len(wait)) - np.repeat(np.cumsum(counts) - counts, counts)
        hold = chosen[np.repeat(first, counts) + step]
        wait_end, hold_end = waits.end_ns[wait], self.holds.end_ns[hold]
        wait_start, hold_start = waits.start_ns[wait], self.holds.start_ns[hold]
        ns = np.minimum(wait_end, hold_end) - np.maximum(wait_start, hold_start)
        own = (wait_start < hold_start) & (wait_end < hold_end)
        own &= waits.thread[wait] == self.holds.thread[hold]
        real = (ns > 0) & ~own
        pairs = np.zeros(np.count_nonzero(real), dtype=PAIR)
        pairs["wait"], pairs["hold"], pairs["ns"] = wait[real], hold[real], ns[real]
        return pairs

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


class Searched:
    """Some holds of a line, ready to be searched for those near a wait.

    Parameters
    ----------
    line
        The line.
    chosen
        Positions of these holds on it, ascending.
    """

    def __init__(self, line: Line, chosen: npt.NDArray[np.intp]) -> None:
        self.chosen = chosen
        self._reach = np.maximum.accumulate(line.hold_end[chosen])
        self._start = line.hold_start[chosen]

    def bounds(self, start: Integers, end: Integers) -> tuple[Integers, Integers]:
        """Return for each wait the first hold, and the one after the last, that it may overlap."""
        return (
            np.searchsorted(self._reach, start, side="right"),
            np.searchsorted(self._start, end, side="left"),
        )


def _is_sorted(times: Integers) -> bool:
    return bool((times[1:] >= times[:-1]).all())
