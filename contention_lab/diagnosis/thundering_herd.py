"""Finding `thundering-herd`: many are woken, and few find something to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.coordination import Purpose
from contention_lab.analysis.sums import summed
from contention_lab.analysis.wakeups import wakeups
from contention_lab.diagnosis.coordination_parties import places, waiting_places
from contention_lab.diagnosis.finding import Finding, Remedy
from contention_lab.diagnosis.lock_case import accused_lock
from contention_lab.diagnosis.thresholds import (
    LARGEST_SEVERITY,
    LEAST_HERD,
    LEAST_STORM_SHARE,
    LEAST_USELESS,
    LEAST_WAKEUPS,
)
from contention_lab.diagnosis.wording import lock_and_origin, number, percent, place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contention_lab.diagnosis.awaited import Awaited
    from contention_lab.diagnosis.case_file import CaseFile

KIND: Final = "thundering-herd"


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding for each event or condition it is true of.

    It is true if all of these are:

    - it wakes several threads at a time, again and again;
    - most of those wake-ups are useless: the thread waits again without having found anything to
      do (see `analysis.wakeups`);
    - and a notable share of the run passes with threads awake that will find nothing.

    The culprit is the code that wakes. Severity is that share of the run.
    """
    for one in file.awaited:
        if one.case.purpose in (Purpose.EVENT, Purpose.CONDITION):
            found = of_case(file, one)
            if found is not None:
                yield found


def of_case(file: CaseFile, awaited: Awaited) -> Finding | None:
    """Return the finding if it is true of an event or condition."""
    case, trace, wall_s = awaited.case, file.trace, file.program.wall_s
    ups = wakeups(trace, case)
    herd = ups.woken_together >= LEAST_HERD
    woken, useless = int(np.count_nonzero(herd)), int(np.count_nonzero(herd & ups.useless))
    if not wall_s or woken < LEAST_WAKEUPS or useless < LEAST_USELESS * woken:
        return None
    storm_share = ups.storms.total_ns / 1e9 / wall_s
    if storm_share < LEAST_STORM_SHARE:
        return None
    severity = min(storm_share, LARGEST_SEVERITY)
    together = woken / max(1, ups.batches)
    lock = accused_lock(case.lock, len(case.locks))
    victims = waiting_places(trace, case)
    waking = summed(case.waker_stack[herd], np.ones(woken))
    culprits = places(trace, waking, ups.storms.total_ns / 1e9)
    where = place(culprits[0].site) if culprits else "Code outside the program"
    return Finding(
        kind=KIND,
        severity=severity,
        summary=(
            f"{where} wakes {number(together)} threads at a time through {lock_and_origin(lock)}, "
            f"and {percent(useless / woken)} of the {woken} wake-ups find nothing to do: for "
            f"{percent(storm_share)} of the run threads are awake in vain."
        ),
        lock=lock,
        victims=victims,
        culprits=culprits,
        evidence=awaited.evidence()
        | {
            "wakeups": woken,
            "useless_wakeups": useless,
            "woken_together": together,
            "storm_s": ups.storms.total_ns / 1e9,
        },
        remedies=(
            Remedy(
                "wake-one",
                "Use `notify()` where one item is for one thread, a condition for each kind of "
                "waiter, or a queue, which wakes one thread for one item.",
                None,
                1.0,
                1.0 / (1.0 - severity),
            ),
        ),
    )
