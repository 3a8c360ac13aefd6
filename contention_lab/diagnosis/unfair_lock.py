"""Finding `unfair-lock`: one thread takes a lock again and again while others starve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contention_lab.analysis.passed_turns import MADE_BY_HAND
from contention_lab.analysis.turns import turns
from contention_lab.diagnosis.finding import Finding, Remedy
from contention_lab.diagnosis.serialised_by_lock import waiting_threads
from contention_lab.diagnosis.thresholds import (
    LARGEST_SEVERITY,
    LEAST_IN_ROW,
    LEAST_OWNER_SHARE,
    LEAST_RETAKE_SHARE,
    LEAST_RETAKES,
    LEAST_WAIT_S,
    LEAST_WAIT_SHARE,
    MOST_FAIRNESS,
)
from contention_lab.diagnosis.wording import lock_and_origin, names, number, percent, place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contention_lab.analysis.turns import Turns
    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.diagnosis.lock_case import LockCase

KIND: Final = "unfair-lock"


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding for each lock it is true of.

    It is true if all of these are:

    - the threads that use the lock spend a tenth of their time or more waiting for it while code
      of another thread holds it;
    - in more than half of the cases where a lock with waiters is released, the thread that had it
      takes it again before any of them, five times in a row or more;
    - it is nearly always the same thread, and over the whole run it gets the lock many times as
      often as the threads that wait. Threads that have a long turn each are not treated unfairly.

    Or, of a lock that the program made itself of a signal for each waiter, instead of the last two:
    more than half of those who get it come before others who have waited for longer, and over the
    whole run some get it many times as often as others.

    Loops of failed tries are left to other findings. Severity is the share of the users' time.
    """
    for at, case in enumerate(file.cases):
        if (
            case.total("wait_s") < LEAST_WAIT_S
            or case.blamed_wait_share < LEAST_WAIT_SHARE
            or not case.culprits
            or case.total("failed_tries") > case.total("contended")
        ):
            continue
        taken = turns(file.trace, *file.spans(at))
        if is_unfair(taken):
            yield _finding(case, taken, _retaken(case, taken))
        elif case.lock.type.endswith(MADE_BY_HAND) and is_overtaken(taken):
            yield _finding(case, taken, _overtaken(case, taken))


def is_unfair(taken: Turns) -> bool:
    """Tell whether one thread keeps a lock to itself."""
    return (
        taken.retakes >= LEAST_RETAKES
        and taken.retake_share >= LEAST_RETAKE_SHARE
        and taken.retaken_in_row >= LEAST_IN_ROW
        and taken.owner_share >= LEAST_OWNER_SHARE
        and taken.fairness <= MOST_FAIRNESS
    )


def is_overtaken(taken: Turns) -> bool:
    """Tell whether a lock goes to those who came last, and some hardly get it."""
    return taken.overtaken_share >= LEAST_RETAKE_SHARE and taken.fairness <= MOST_FAIRNESS


def _retaken(case: LockCase, taken: Turns) -> str:
    return (
        f"one thread releases {lock_and_origin(case.lock)} in {place(case.culprits[0].code)} and "
        f"takes it again before any of them, {number(taken.retaken_in_row)} times in a row "
        f"({percent(taken.retake_share)} of all hand-overs)."
    )


def _overtaken(case: LockCase, taken: Turns) -> str:
    return (
        f"{lock_and_origin(case.lock)} goes to threads that came later, "
        f"{percent(taken.overtaken_share)} of the times, from {place(case.culprits[0].code)}."
    )


def _finding(case: LockCase, taken: Turns, how: str) -> Finding:
    severity = min(case.blamed_wait_share, LARGEST_SEVERITY)
    high = 1.0 / (1.0 - severity)
    return Finding(
        kind=KIND,
        severity=severity,
        summary=(f"{waiting_threads(case, 'starve')} in {names(case.victims, most=2)}: {how}"),
        lock=case.lock,
        victims=case.victims,
        culprits=case.culprits,
        evidence={
            **case.evidence(),
            "hand_overs": taken.hand_overs,
            "retakes": taken.retakes,
            "retakes_in_a_row": taken.retaken_in_row,
            "overtaken_share": taken.overtaken_share,
            "fairness": taken.fairness,
        },
        remedies=(
            Remedy(
                "fair-lock",
                "Use a lock that hands over in the order of arrival (`TicketLock`, or a queue of "
                "requests to one thread).",
                None,
                1.0,
                high,
            ),
            Remedy(
                "step-back",
                f"Let {names(case.culprits, most=1)} do more under one hold and pause between two, "
                "so that others get their turn.",
                None,
                1.0,
                high,
            ),
        ),
    )
