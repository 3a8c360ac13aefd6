"""Deadlocks: threads that waited for each other in a ring, for ever or until one of them gave up.

A thread that waits for a lock waits for the thread that holds it. At any moment that is a graph
with at most one arrow out of each thread; where the arrows lead back, nobody in the ring can go on
by himself. Such a ring ends only when a wait in it ends without the lock: by its timeout, by a
signal, with the end of the recording. So it is enough to look at the graph at the moments at which
that happened. A join is an arrow, too, to the thread that is to end, and a join that gives up is
such a moment; a ring has one lock in it at least.

Left out are locks that several threads hold at once, since another permit could come back, and
locks released by a thread that did not acquire them: there "who holds it" does not tell who would
have let it go. A semaphore all of whose permits that are out were taken by the thread that waits,
in code that is still going on around the wait, is like a lock of its own.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.analysis.intervals import hold_spans, lock_waits
from contention_lab.analysis.joined import Joined, joins
from contention_lab.analysis.lock_order import signals
from contention_lab.analysis.overlap import on_one_line
from contention_lab.analysis.sites import is_user_code
from contention_lab.trace import HoldFlag, Outcome, WaitKind

if TYPE_CHECKING:
    import numpy.typing as npt

    from contention_lab.analysis.intervals import Spans
    from contention_lab.trace import Trace

    Integers = npt.NDArray[np.int64]

MOMENTS: Final = 20_000
"""Moments looked at, those of the longest waits: a program that gives up more often has said
enough."""

WITHOUT: Final = (Outcome.TIMED_OUT, Outcome.INTERRUPTED, Outcome.CANCELLED, Outcome.OPEN)
"""How a wait ends without the lock."""


@dataclass(frozen=True, slots=True)
class Link:
    """One thread of a ring, and what it waited for.

    Attributes
    ----------
    wait
        Position in `trace.waits`.
    thread, lock
        Who waited for what; `lock` may be the entry of a thread that was joined.
    holder
        Who held it (or was to end): the thread of the next link.
    hold
        Position in `trace.holds` of that hold, -1 if it was not recorded.
    """

    wait: int
    thread: int
    lock: int
    holder: int
    hold: int


@dataclass(frozen=True, slots=True)
class Deadlock:
    """A ring of threads that waited for each other; of one link, a thread waiting for itself.

    Attributes
    ----------
    links
        Each waits for the thread of the next one, the last for that of the first.
    start_ns, end_ns
        From when the ring was closed until the first wait in it ended.
    is_open
        It lasted to the end of the recording.
    """

    links: tuple[Link, ...]
    start_ns: int
    end_ns: int
    is_open: bool

    @property
    def is_alone(self) -> bool:
        """A single thread waited for itself."""
        return len(self.links) == 1


def deadlocks(trace: Trace) -> tuple[Deadlock, ...]:
    """Return all deadlocks that happened, by their beginning."""
    if not np.isin(trace.wait_columns["outcome"], WITHOUT).any():
        return ()
    graph = _WaitFor(trace)
    found = {}
    for wait in graph.given_up:
        links = graph.ring(wait)
        if not links:
            continue
        key = frozenset(link.wait for link in links)
        if key not in found:
            starts = [graph.start[link.wait] for link in links]
            ends = [graph.end[link.wait] for link in links]
            outcome = trace.wait_columns["outcome"]
            is_open = all(outcome[link.wait] == Outcome.OPEN for link in links)
            found[key] = Deadlock(links, max(starts), min(ends), is_open)
    return tuple(sorted(found.values(), key=lambda one: (one.start_ns, one.links[0].wait)))


class _WaitFor:
    """Who waited for whom at the moments at which somebody gave up.

    Attributes
    ----------
    given_up
        Waits for locks that ended without them, and for threads that ended before these did, by
        position in `trace.waits`.
    start, end
        Of waits, by their position.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        contention, of_threads = lock_waits(trace), joins(trace)
        self._of_thread = {*of_threads.lock.tolist()}
        given_up = [_given_up(trace, waits) for waits in (contention, of_threads)]
        length, index, ends = (
            np.concatenate([getattr(part, name) for part in given_up])
            for name in ("length_ns", "index", "end_ns")
        )
        longest = np.argsort(-length, kind="stable")[:MOMENTS]
        self.given_up: list[int] = index[longest].tolist()
        moments = np.unique(ends[longest]) - 1
        parts = [waits.where(_covers(waits, moments)) for waits in (contention, of_threads)]
        index = np.concatenate([part.index for part in parts])
        start = np.concatenate([part.start_ns for part in parts])
        end = np.concatenate([part.end_ns for part in parts])
        self.start = dict(zip(index.tolist(), start.tolist(), strict=True))
        self.end = dict(zip(index.tolist(), end.tolist(), strict=True))
        self._waits = _ByOwner(trace.wait_columns["thread"][index], start, end, index)
        holds = hold_spans(trace)
        holds = holds.where(np.isin(holds.lock, trace.wait_columns["lock"][index]))
        self._shared = _shared(trace, holds) | {*signals(trace.orders).tolist()}
        holds = holds.where(_covers(holds, moments) & ~np.isin(holds.lock, [*self._shared]))
        self._holds = _ByOwner(
            holds.lock, holds.start_ns, holds.end_ns, holds.index.astype(np.int64)
        )
        self._joined = Joined(trace)

    def ring(self, wait: int) -> tuple[Link, ...]:
        """Return the ring that a wait was part of when it ended, if there was one."""
        time_ns = self.end[wait] - 1
        first = int(self._trace.wait_columns["thread"][wait])
        links: list[Link] = []
        seen: set[int] = set()
        at: int | None = wait
        while at is not None:
            link = self._link(at, time_ns)
            if link is None or link.thread in seen:
                return ()
            links.append(link)
            seen.add(link.thread)
            if link.holder == first:
                is_about_locks = any(one.lock not in self._of_thread for one in links)
                return tuple(links) if is_about_locks else ()
            at = self._waits.at(link.holder, time_ns)
        return ()

    def _link(self, wait: int, time_ns: int) -> Link | None:
        """Return who it is that a wait waits for at a moment."""
        record = self._trace.wait_columns[wait]
        thread, lock = int(record["thread"]), int(record["lock"])
        if lock in self._of_thread:
            awaited = self._joined.at(lock, time_ns)
            return Link(wait, thread, lock, awaited, -1) if awaited is not None else None
        if lock in self._shared:
            return None
        hold = self._holds.at(lock, time_ns)
        if hold is not None:
            return Link(wait, thread, lock, int(self._trace.hold_columns["thread"][hold]), hold)
        holder = int(record["holder"])
        if record["outcome"] == Outcome.OPEN and not holder and self._has_all(record):
            return Link(wait, thread, lock, thread, -1)
        if record["outcome"] != Outcome.OPEN or not holder or self._was_over(wait, lock, holder):
            return None
        # A hold that is open as well, and was not recorded: the wait says who had it.
        return Link(wait, thread, lock, holder, -1)

    def _has_all(self, record: np.void) -> bool:
        """Tell whether who waits took all permits that are out in code that has called this.

        Whoever takes one after the other at the same place expects others to give them back.
        """
        site = self._trace.frames.get(int(record["holder_site"]))
        if site is None or record["kind"] != WaitKind.CONTENTION:
            return False
        frames = [
            one for one in self._trace.stack(int(record["stack"])) if is_user_code(one.filename)
        ]
        return any(
            (one.filename, one.function) == (site.filename, site.function) for one in frames[1:]
        )

    def _was_over(self, wait: int, lock: int, holder: int) -> bool:
        """Tell whether a holder is known to have released the lock since the wait began."""
        holds = self._trace.hold_columns
        his = (holds["lock"] == lock) & (holds["thread"] == holder)
        return bool((his & (holds["end_ns"] >= self.start[wait])).any())


class _ByOwner:
    """Spans by their owner (a thread, a lock) and the time they begin."""

    def __init__(
        self, owner: npt.NDArray[Any], start: Integers, end: Integers, index: Integers
    ) -> None:
        order = np.lexsort((start, owner))
        self._spans: dict[int, tuple[list[int], list[int], list[int]]] = {}
        columns = (owner[order], start[order], end[order], index[order])
        for key, begin, until, at in zip(*(c.tolist() for c in columns), strict=True):
            starts, ends, places = self._spans.setdefault(key, ([], [], []))
            starts.append(begin)
            ends.append(until)
            places.append(at)

    def at(self, owner: int, time_ns: int) -> int | None:
        """Return the span of an owner that goes on at a moment, if there is one."""
        if owner not in self._spans:
            return None
        starts, ends, places = self._spans[owner]
        at = bisect_right(starts, time_ns) - 1
        return places[at] if at >= 0 and ends[at] > time_ns else None


def _covers(spans: Spans, moments: Integers) -> npt.NDArray[np.bool_]:
    """Tell which spans go on at one of the moments, which are sorted."""
    if not len(moments):
        return np.zeros(len(spans.index), dtype=np.bool_)
    at = np.searchsorted(moments, spans.start_ns)
    next_moment = moments[np.minimum(at, len(moments) - 1)]
    covers: npt.NDArray[np.bool_] = (at < len(moments)) & (next_moment < spans.end_ns)
    return covers


def _given_up(trace: Trace, waits: Spans) -> Spans:
    """Return those of some waits that ended without what they were for."""
    without = np.isin(trace.wait_columns["outcome"][waits.index], WITHOUT)
    return waits.where(without & (waits.length_ns > 0))


def _shared(trace: Trace, holds: Spans) -> set[int]:
    """Return the locks that several threads hold at once, or that others release."""
    group = np.unique(holds.lock, return_inverse=True)[1]
    (start,) = on_one_line((group, holds.start_ns))
    order = np.argsort(start, kind="stable")
    lock, begin, end = holds.lock[order], holds.start_ns[order], holds.end_ns[order]
    early = (lock[1:] == lock[:-1]) & (begin[1:] < end[:-1])
    handed = (trace.hold_columns["flags"][holds.index] & int(HoldFlag.HANDED_OFF)) != 0
    return {*lock[1:][early].tolist(), *holds.lock[handed].tolist()}
