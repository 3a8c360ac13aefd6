"""Readers that keep a writer out: who comes and goes while somebody waits for all to be gone.

A lock for readers and writers that a program has made itself is a number and something that guards
it. Being inside is not recorded, but coming in and going out are: holds of the guarding lock, taken
at two lines in turn. While somebody waits on the lock's condition these are recorded, whether they
block anybody or not (up to a limit: then only the time until the last one is spoken of).

Which of the two is coming in? The line that wakes waiters is going out. If nobody is woken, it is
the order in the source: what both are reached from comes in before it goes out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contention_lab.analysis.distinct import distinct
from contention_lab.analysis.intervals import hold_spans
from contention_lab.analysis.sites import user_frame
from contention_lab.analysis.windows import Windows
from contention_lab.trace import HoldFlag, Level, WaitFlag

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy.typing as npt

    from contention_lab.analysis.coordination import CoordinationCase
    from contention_lab.analysis.intervals import Spans
    from contention_lab.trace import Trace

    Integers: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Visits:
    """What others did between coming in and going out, while somebody waited.

    Attributes
    ----------
    start_ns, end_ns, thread
        Of each visit, int64.
    entry, exit
        The frames that took the lock at its start and at its end, by id.
    entered
        How many of them began while somebody waited.
    waited
        When somebody waited, as far as holds were recorded.
    satisfied
        How many of the waits were followed by something else than waiting again.
    stacks
        Ids of stacks under which visitors went out, as far as recorded.
    """

    start_ns: Integers
    end_ns: Integers
    thread: Integers
    entry: int
    exit: int
    entered: int
    waited: Windows
    satisfied: int
    stacks: tuple[int, ...]

    @property
    def covered_share(self) -> float:
        """Share of the waiting during which at least one visitor was inside."""
        inside = Windows.union(self.start_ns, self.end_ns)
        covered = int(inside.covered_ns(self.waited.start_ns, self.waited.end_ns).sum())
        return covered / self.waited.total_ns if self.waited.total_ns else 0.0


def visits(trace: Trace, case: CoordinationCase) -> Visits | None:
    """Return the visits that others made under the lock of a condition while it was waited on.

    None if no two lines took the lock in turn, or it is not known which of them is coming in.
    """
    holds = hold_spans(trace)
    watched = trace.hold_columns["flags"] & int(HoldFlag.WATCHED) != 0
    mine = np.isin(holds.lock, list(case.locks)) & ~np.isin(holds.thread, [*case.waiters])
    if trace.level < Level.TRACE:  # there, all are recorded
        mine &= watched | (trace.hold_columns["flags"] & int(HoldFlag.UNCONTENDED) == 0)
    part = holds.where(mine)
    if len(part.index) < 2:
        return None
    site = trace.hold_columns["site"][part.index].astype(np.int64)
    lines, which = distinct(site)
    most = np.argsort(-np.bincount(which), kind="stable")[:2]
    if len(most) < 2:
        return None
    pair = [lines[int(at)][0] for at in most]
    chosen = np.isin(site, pair)
    part, site = part.where(chosen), site[chosen]
    first = _entry(trace, case, part, site, pair)
    if first is None:
        return None
    entry, leave = pair if pair[0] == first else pair[::-1]
    waited = case.windows.within(0, int(part.end_ns.max()))
    start, end, thread = _paired(part, site, entry, leave, waited)
    entered = int(np.count_nonzero(waited.contains(start)))
    stacks = trace.hold_columns["stack"][part.index[site == leave]]
    return Visits(
        start,
        end,
        thread,
        entry,
        leave,
        entered,
        waited,
        _satisfied(case),
        tuple(np.unique(stacks[stacks != 0]).tolist()),
    )


def _entry(
    trace: Trace, case: CoordinationCase, part: Spans, site: Integers, lines: list[int]
) -> int | None:
    """Return which of two lines is coming in, None if that is not known."""
    waking = _line_of_waking(trace, case, lines)
    if waking:
        return lines[0] if waking == lines[1] else lines[1]
    stacks = trace.hold_columns["stack"][part.index]
    seen = [np.unique(stacks[(site == line) & (stacks != 0)]).tolist() for line in lines]
    for one in seen[0]:
        for other in seen[1]:
            before = _comes_before(trace, one, other)
            if before is not None:
                return lines[0] if before else lines[1]
    return None


def _comes_before(trace: Trace, one: int, other: int) -> bool | None:
    """Tell which of two stacks is earlier in the function where they part, if they part in one."""
    for a, b in zip(trace.stack(one)[::-1], trace.stack(other)[::-1], strict=False):
        if (a.filename, a.function) != (b.filename, b.function):
            return None
        if a.line != b.line:
            return a.line < b.line
    return None


def _paired(
    part: Spans, site: Integers, entry: int, leave: int, waited: Windows
) -> tuple[Integers, Integers, Integers]:
    """Return visits: from a hold at one line to the thread's next one, at the other.

    Who goes out first was inside before; who came in last stays until the end.
    """
    order = np.lexsort((part.start_ns, part.thread))
    part, site = part.where(order), site[order]
    same = np.zeros(len(site) + 1, dtype=np.bool_)
    same[1:-1] = part.thread[1:] == part.thread[:-1]
    comes = np.flatnonzero(site == entry)
    next_at = np.minimum(comes + 1, len(site) - 1)
    goes = same[comes + 1] & (site[next_at] == leave)
    first_ns, last_ns = int(waited.start_ns.min(initial=0)), int(waited.end_ns.max(initial=0))
    early = np.flatnonzero(~same[:-1] & (site == leave))
    late = comes[~same[comes + 1]]
    return (
        np.concatenate(
            [part.end_ns[comes[goes]], np.full(len(early), first_ns), part.end_ns[late]]
        ),
        np.concatenate(
            [part.start_ns[next_at[goes]], part.start_ns[early], np.full(len(late), last_ns)]
        ),
        np.concatenate([part.thread[comes[goes]], part.thread[early], part.thread[late]]),
    )


def _satisfied(case: CoordinationCase) -> int:
    """Count the waits that ended with what they were for: the thread did not wait again."""
    order = np.lexsort((case.start_ns, case.thread))
    woken = case.waker[order] != 0
    again = case.flags[order] & int(WaitFlag.AGAIN) != 0
    same = np.append(case.thread[order][1:] == case.thread[order][:-1], False)
    return int(np.count_nonzero(woken & ~(same & np.append(again[1:], False))))


def _line_of_waking(trace: Trace, case: CoordinationCase, lines: list[int]) -> int:
    """Return which of two lines took the lock under which waiters were woken, 0 for neither."""
    found = 0
    for stack in np.unique(case.waker_stack[case.waker != 0]).tolist():
        frame = user_frame(trace.stack(stack))
        above = [
            (known.line, line)
            for line in lines
            if (known := trace.frames.get(line)) is not None
            and frame is not None
            and (known.filename, known.function) == (frame.filename, frame.function)
            and known.line <= frame.line
        ]
        found = max(above)[1] if above else found
    return found
