"""Finding `slow-holder-elsewhere`: code that seldom takes a lock makes all others wait for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from contention_lab.diagnosis.blocked_in import across
from contention_lab.diagnosis.finding import Finding, Remedy
from contention_lab.diagnosis.held_across_io import waits_outside
from contention_lab.diagnosis.serialised_by_lock import waiting_threads
from contention_lab.diagnosis.thresholds import (
    LARGEST_SEVERITY,
    LEAST_LONGER_HOLD,
    LEAST_ONE_PATH,
    LEAST_WAIT_S,
    LEAST_WAIT_SHARE,
    MOST_OWN_PATH,
    MOST_SELDOM,
    MOSTLY,
)
from contention_lab.diagnosis.wording import (
    duration,
    lock_and_origin,
    names,
    percent,
    place,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeAlias

    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.diagnosis.finding import Party
    from contention_lab.diagnosis.lock_case import LockCase
    from contention_lab.trace import Frame

    Function: TypeAlias = tuple[str, str] | None

KIND: Final = "slow-holder-elsewhere"
ROUNDING: Final = 1e-6
"""Sums of times that differ by less are the same."""


@dataclass(frozen=True, slots=True)
class SlowPath:
    """The code path that makes most of the waiting, against all others.

    Attributes
    ----------
    blamed_share
        Its share of the waiting that code is to blame for.
    own_wait_share
        Share of the waiting that it does itself.
    acquire_share
        Its share of all acquires.
    hold_s, other_hold_s
        How long it holds the lock at a time, and all other code, on average.
    """

    blamed_share: float
    own_wait_share: float
    acquire_share: float
    hold_s: float
    other_hold_s: float


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding for each lock it is true of.

    It is true if all of these are:

    - the threads that use the lock spend a tenth of their time or more waiting for it while code
      of another thread holds it;
    - nearly all of that waiting is for one function, which itself waits for next to none of it;
    - that function takes the lock seldom, but holds it many times longer than others do;
    - it is not just input or output that this function does under a lock it takes itself: that is
      `held-across-io`. Where a library takes the lock and calls the function under it (a logging
      handler, a cache), there is no such line to move.

    Severity is the share of the users' time that they wait for this function.
    """
    return (finding for case in file.cases if (finding := of_lock(case)))


def of_lock(case: LockCase) -> Finding | None:
    """Return the finding if it is true of a lock."""
    if case.total("wait_s") < LEAST_WAIT_S or case.blamed_wait_share < LEAST_WAIT_SHARE:
        return None
    if case.only_retried:
        return None
    path = slow_path(case)
    if path is None or not is_elsewhere(path):
        return None
    if waits_outside(case.held) and case.in_libraries_share < MOSTLY:
        return None
    severity = min(case.blamed_wait_share * path.blamed_share, LARGEST_SEVERITY)
    return Finding(
        kind=KIND,
        severity=severity,
        summary=summary(case, path),
        lock=case.lock,
        victims=case.victims,
        culprits=case.blamed,
        evidence={
            **case.evidence(),
            "culprit_acquire_share": path.acquire_share,
            "culprit_hold_s": path.hold_s,
            "other_hold_s": path.other_hold_s,
        },
        remedies=remedies(case, severity),
    )


def slow_path(case: LockCase) -> SlowPath | None:
    """Return the figures of the function most waited for; None if not all are known."""
    if not case.culprits:
        return None
    culprit = _function(case.culprits[0].code)
    blamed = sum(party.share for party in case.culprits)
    holds = [times for frame, times in case.holds.items() if _function(frame) == culprit]
    count, held_s = sum(times.count for times in holds), sum(times.total_s for times in holds)
    acquires, whole_s = case.total("acquires"), case.total("hold_s")
    others_held = acquires > count and whole_s > held_s * (1.0 + ROUNDING)
    if culprit is None or not count or not blamed or not others_held:
        return None
    return SlowPath(
        blamed_share=_shares(case.culprits, culprit) / blamed,
        own_wait_share=_shares(case.victims, culprit),
        acquire_share=count / acquires,
        hold_s=held_s / count,
        other_hold_s=max(0.0, whole_s - held_s) / (acquires - count),
    )


def is_elsewhere(path: SlowPath) -> bool:
    """Tell whether one seldom path is to blame, and others pay."""
    return (
        path.blamed_share >= LEAST_ONE_PATH
        and path.own_wait_share <= MOST_OWN_PATH
        and path.acquire_share <= MOST_SELDOM
        and path.hold_s >= LEAST_LONGER_HOLD * path.other_hold_s
    )


def _shares(parties: Iterable[Party], function: Function) -> float:
    return sum(party.share for party in parties if _function(party.code) == function)


def _function(frame: Frame | None) -> Function:
    return None if frame is None else (frame.filename, frame.function)


def summary(case: LockCase, path: SlowPath) -> str:
    """Return the finding as a sentence."""
    culprit = case.culprits[0]
    executing = ""
    if culprit.site is not None and _function(culprit.site) != _function(culprit.code):
        executing = f", in {place(culprit.site)}"
    return (
        f"{waiting_threads(case)} in {names(case.victims, most=2)} for "
        f"{lock_and_origin(case.lock)}: {place(culprit.code)} holds it {duration(path.hold_s)} at "
        f"a time{executing}{case.passed_on}; it takes it in {percent(path.acquire_share)} of the "
        f"acquires and causes {percent(path.blamed_share)} of the waiting."
    )


def remedies(case: LockCase, severity: float) -> tuple[Remedy, ...]:
    """Return what gets the slow work out of the others' way."""
    high = 1.0 / (1.0 - severity)
    code = names(case.culprits, most=1)
    what = across(case) if waits_outside(case.held) else "the slow part"
    return (
        Remedy(
            "narrow",
            f"In {code}, do {what} before the lock is taken, and hand over only the result.",
            None,
            1.0,
            high,
        ),
    )
