"""What a holder waits for under its lock, if that is no lock: a thread to end, a result, an item.

Then the code that takes the lock is not all that is to blame: so is the work that it waits for.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.intervals import coordination_waits
from contention_lab.analysis.joined import THREAD, Joined
from contention_lab.analysis.sums import summed
from contention_lab.analysis.windows import Windows
from contention_lab.diagnosis.coordination_parties import places
from contention_lab.diagnosis.wording import names, percent
from contention_lab.trace import Outcome

if TYPE_CHECKING:
    import numpy.typing as npt

    from contention_lab.analysis.activity import Activity
    from contention_lab.analysis.intervals import Spans
    from contention_lab.diagnosis.finding import Party
    from contention_lab.trace import Trace

    Integers = npt.NDArray[np.int64]

MOST_WAITS: Final = 2_000
"""Waits under a lock that are looked at, the longest first."""


@dataclass(frozen=True, slots=True)
class Errand:
    """What holders of a lock wait for, and who does it.

    Attributes
    ----------
    share
        Of the waiting for the lock: during which its holder waits for that.
    parties
        What those it waits for did meanwhile, the most first; shares are of the waiting for the
        lock.
    """

    share: float
    parties: tuple[Party, ...]

    def clause(self) -> str:
        """Say it, as the end of a sentence."""
        return f"; for {percent(self.share)} of that the holder waits for {names(self.parties)}"


def errand(
    trace: Trace, activity: Activity, holds: Spans, share: float, waited_s: float
) -> Errand | None:
    """Return what holders wait for under a lock; None if it is not known who does it.

    Parameters
    ----------
    trace, activity
        A trace, and what its threads do outside of waits.
    holds
        Those that others waited for.
    share
        Of the waiting for the lock: during which holders wait for something else than a lock.
    waited_s
        All waiting for the lock, of all threads together.
    """
    waits = _within(coordination_waits(trace), holds)
    known = Joined(trace)
    columns = trace.wait_columns
    spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
    records = zip(
        *(part.tolist() for part in (waits.index, waits.lock, waits.start_ns)), strict=True
    )
    for (at, lock, start), end in zip(records, waits.end_ns.tolist(), strict=True):
        if trace.lock(lock).type.startswith(THREAD):
            actor = known.at(lock, start) or 0
        else:
            ended = columns["outcome"][at] == Outcome.ACQUIRED
            actor = int(columns["holder"][at]) if ended else 0
        if actor:
            spans[actor].append((start, end))
    seen: dict[int, float] = defaultdict(float)
    for actor, times in spans.items():
        start_ns, end_ns = np.array(times, dtype=np.int64).T
        for stack, weight in activity.stacks((actor,), Windows.union(start_ns, end_ns)).items():
            seen[stack] += weight
    woken = summed(columns["holder_stack"][waits.index], waits.length_ns)
    woken.pop(0, None)
    found = places(trace, seen or woken, waited_s * share)
    return Errand(share, tuple(_of_all(party, share) for party in found)) if found else None


def _of_all(party: Party, share: float) -> Party:
    return type(party)(party.site, party.stack, party.thread_s, party.share * share)


def _within(waits: Spans, holds: Spans) -> Spans:
    """Return the longest waits that threads were in during their holds."""
    inside = np.zeros(len(waits.index), dtype=np.bool_)
    for thread in np.unique(holds.thread).tolist():
        mine, own = waits.thread == thread, holds.thread == thread
        under = Windows.union(holds.start_ns[own], holds.end_ns[own])
        inside[mine] = under.contains(waits.start_ns[mine])
    waits = waits.where(inside)
    return waits.where(np.sort(np.argsort(-waits.length_ns, kind="stable")[:MOST_WAITS]))
