"""Deadlocks put together by their locks: who stood still where, holding what, and for how long.

It gathers and adds up; it judges nothing. What several findings say of a lock, and how they name
one, is here, too.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contention_lab.analysis.critical_path import union_ns
from contention_lab.analysis.sites import is_user_code, user_frame
from contention_lab.diagnosis.finding import Party

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contention_lab.analysis.wait_for import Deadlock, Link
    from contention_lab.diagnosis.finding import AccusedLock
    from contention_lab.trace import Frame, Trace


@dataclass(frozen=True, slots=True)
class Standstill:
    """Deadlocks over the same locks.

    Attributes
    ----------
    deadlocks
        The longest first.
    locks
        The locks that the threads of the longest one waited for, in the order of its links; None
        for the end of a thread.
    lasted_s
        Wall time during which any of them lasted.
    waited_s
        All the waiting in them.
    is_open
        One of them lasted to the end of the recording.
    first
        Of these locks, the one that was made first: it stands for all.
    victims
        Where threads waited: for the first lock, then for others, the most first.
    culprits
        Where the threads that were waited for had acquired the lock (or, if they were to end, stood
        still), in the same order, with the stacks they then stood still with.
    """

    deadlocks: tuple[Deadlock, ...]
    locks: tuple[AccusedLock | None, ...]
    lasted_s: float
    waited_s: float
    is_open: bool
    first: AccusedLock | None
    victims: tuple[Party, ...]
    culprits: tuple[Party, ...]


def standstills(
    trace: Trace, found: Iterable[Deadlock], locks: Mapping[int, AccusedLock]
) -> tuple[Standstill, ...]:
    """Return deadlocks by their locks, the longest standstill first.

    Parameters
    ----------
    trace
        A trace.
    found
        Its deadlocks.
    locks
        What to call its locks, by id.
    """
    groups: dict[frozenset[AccusedLock | None], list[Deadlock]] = defaultdict(list)
    for deadlock in found:
        groups[frozenset(locks.get(link.lock) for link in deadlock.links)].append(deadlock)
    all_of_them = [_standstill(trace, group, locks) for group in groups.values()]
    return tuple(sorted(all_of_them, key=lambda one: (not one.is_open, -one.lasted_s)))


def _standstill(
    trace: Trace, group: list[Deadlock], locks: Mapping[int, AccusedLock]
) -> Standstill:
    group.sort(key=lambda one: (one.start_ns - one.end_ns, one.start_ns))
    start = np.array([one.start_ns for one in group])
    end = np.array([one.end_ns for one in group])
    links = [
        (link, following, one.end_ns - one.start_ns)
        for one in group
        for link, following in zip(one.links, (*one.links[1:], one.links[0]), strict=True)
    ]
    waited_ns = sum(ns for _, _, ns in links)
    made = min((link.lock for link, _, _ in links if link.lock in locks), default=0)
    victims, culprits = _Places(), _Places()
    for link, following, ns in links:
        stack, rank = _stack(trace, link), int(locks.get(link.lock) != locks.get(made))
        victims.add(user_frame(stack), stack, ns, rank)
        behind = _stack(trace, following)  # of the thread that this link waits for
        # A thread that is to end has acquired nothing: it is where it stands that keeps it.
        acquired = acquired_at(trace, link) if link.lock in locks else user_frame(behind)
        culprits.add(acquired, behind, ns, rank)
    return Standstill(
        deadlocks=tuple(group),
        locks=tuple(locks.get(link.lock) for link in group[0].links),
        lasted_s=union_ns(start, end) / 1e9,
        waited_s=waited_ns / 1e9,
        is_open=any(one.is_open for one in group),
        first=locks.get(made),
        victims=victims.parties(waited_ns),
        culprits=culprits.parties(waited_ns, acquired=True),
    )


def acquired_at(trace: Trace, link: Link) -> Frame | None:
    """Return where the holder of a link had acquired the lock, in user code if that is known."""
    site = int(trace.wait_columns["holder_site"][link.wait])
    if link.hold >= 0:
        site = int(trace.hold_columns["site"][link.hold])
    frame = trace.frames.get(site)
    if frame is not None and is_user_code(frame.filename):
        return frame
    stack = int(trace.hold_columns["stack"][link.hold]) if link.hold >= 0 else 0
    return user_frame(trace.stack(stack)) or frame


def _stack(trace: Trace, link: Link) -> tuple[Frame, ...]:
    return trace.stack(int(trace.wait_columns["stack"][link.wait]))


class _Places:
    """Time by place, with the stack of the most time; a lower rank comes first."""

    def __init__(self) -> None:
        self._ns: dict[Frame | None, int] = defaultdict(int)
        self._rank: dict[Frame | None, int] = {}
        self._stacks: dict[Frame | None, dict[tuple[Frame, ...], int]] = {}

    def add(self, frame: Frame | None, stack: tuple[Frame, ...], ns: int, rank: int) -> None:
        self._ns[frame] += ns
        self._rank[frame] = min(rank, self._rank.get(frame, rank))
        stacks = self._stacks.setdefault(frame, {})
        stacks[stack] = stacks.get(stack, 0) + ns

    def parties(self, whole_ns: int, *, acquired: bool = False) -> tuple[Party, ...]:
        return tuple(
            Party(
                frame,
                max(self._stacks[frame], key=lambda stack: self._stacks[frame][stack]),
                ns / 1e9,
                ns / whole_ns if whole_ns else 0.0,
                acquired=frame if acquired else None,
            )
            for frame, ns in sorted(
                self._ns.items(), key=lambda item: (self._rank[item[0]], -item[1])
            )
        )
