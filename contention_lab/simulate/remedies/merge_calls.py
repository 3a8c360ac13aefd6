"""Merging calls: N critical sections of a thread in a row become one, the work between goes before.

Fewer acquires and hand-offs for the same work under the lock, in longer holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.simulate.batch.sections import (
    AT_ACQUIRE,
    AT_RELEASE,
    BEFORE,
    INSIDE,
    rearranged,
    sections,
)
from contention_lab.simulate.remedies.remedy import Remedy, whole_number

if TYPE_CHECKING:
    from contention_lab.simulate.batch.batch import Batch
    from contention_lab.simulate.batch.target import Target
    from contention_lab.simulate.history import History
    from contention_lab.simulate.remedies.remedy import Change

FORM: Final = "merge-calls=N"
CALLS: Final = 8
"""Calls that are suggested to be merged."""
SHORT_NS: Final = 50e3
"""It is suggested if a hold is shorter: with longer ones a hand-off costs next to nothing."""


def read(text: str, target: Target) -> Change:
    """Return the change."""
    calls = whole_number(text, FORM)

    def change(batch: Batch) -> Batch:
        return batch.with_all(lambda one: _merged(one, target, calls))

    return change


def suggest(target: Target) -> list[str]:
    """Return a number of calls, if holds are short."""
    held = target.held
    return [str(CALLS)] if held.count and held.total / held.count < SHORT_NS else []


def _merged(one: History, target: Target, calls: int) -> History:
    found = sections(one, target.ids)
    if len(found) < 2:
        return one
    group = np.arange(len(found)) // calls
    first = np.searchsorted(group, np.arange(group[-1] + 1))
    last = np.append(first[1:], len(found)) - 1
    start, stop = found.acquire[first], found.release[last]
    steps = np.arange(len(one.ops))
    of_group = np.searchsorted(start, steps, side="right") - 1
    within = (of_group >= 0) & (steps <= stop[of_group])
    place = np.where(within, np.where(found.of_step >= 0, INSIDE, BEFORE), AT_RELEASE)
    place[start], place[stop] = AT_ACQUIRE, AT_RELEASE
    keep = np.ones(len(steps), np.bool_)
    keep[found.acquire], keep[found.release] = False, False
    keep[start], keep[stop] = True, True
    section = np.where(within, start[np.maximum(of_group, 0)], steps)
    kept = steps[keep]
    return rearranged(one, kept, one.ops[keep], section[keep], place[keep])


REMEDY: Final = Remedy(
    kind="merge-calls",
    form=FORM,
    about="take the lock once for N calls in a row",
    warning="what is serial stays serial, and others wait longer for each turn; work between the "
    "calls must not depend on them",
    lifts=False,
    read=read,
    suggest=suggest,
)
