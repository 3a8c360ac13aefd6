"""Finding `serialised-by-lock`: threads take turns at a lock for much of their time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contention_lab.diagnosis.blocked_in import calls_s, move_out
from contention_lab.diagnosis.finding import Finding, Remedy
from contention_lab.diagnosis.spin_collapse import stretched_share
from contention_lab.diagnosis.thresholds import (
    LARGEST_SEVERITY,
    LEAST_KNOWN,
    LEAST_WAIT_S,
    LEAST_WAIT_SHARE,
    MOSTLY,
    NEARLY_ALWAYS,
)
from contention_lab.diagnosis.wording import (
    counted,
    duration,
    lock_and_origin,
    names,
    percent,
    place,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.diagnosis.lock_case import LockCase

KIND: Final = "serialised-by-lock"


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding for each lock it is true of.

    It is true if the threads that use the lock spend a tenth of their time or more waiting for it
    while code of another thread holds it. Two kinds of waiting do not count, since no work done
    under the lock causes them: while the new holder itself waits for the GIL, and while nobody
    holds the lock (hand-off), so that it was something else that kept the waiter from taking it.

    Severity is that share of time, but not more than the machine has left to give: threads beyond
    the cores would wait for a CPU if they did not wait for the lock. What a collapse of spinning
    explains (see `spin_collapse`) is taken off, since parking would remove it.
    """
    return (finding for case in file.cases if (finding := of_lock(case)))


def of_lock(case: LockCase) -> Finding | None:
    """Return the finding if it is true of a lock."""
    if case.total("wait_s") < LEAST_WAIT_S or case.blamed_wait_share < LEAST_WAIT_SHARE:
        return None
    if case.only_retried:
        return None
    severity = min(case.blamed_wait_share, case.idle_share, LARGEST_SEVERITY)
    severity *= 1.0 - stretched_share(case)
    return Finding(
        kind=KIND,
        severity=severity,
        summary=summary(case),
        lock=case.lock,
        victims=case.victims,
        culprits=case.blamed,
        evidence={**case.evidence(), **calls_s(case.held)},
        remedies=remedies(case, severity),
    )


def summary(case: LockCase) -> str:
    """Return the finding as a sentence."""
    share = percent(case.wait_share)
    lock = lock_and_origin(case.lock)
    if not case.culprits:
        return (
            f"{share} of the time of {counted(case.users, 'thread')} is spent waiting for {lock}; "
            "who holds it was not recorded."
        )
    culprit = case.culprits[0]
    held = case.holds.get(culprit.code)
    each = f", {duration(held.costly_s)} at a time" if held else ""
    when = "" if case.passed_on else _when(case)  # what is passed on is more to the point
    return (
        f"{when}{waiting_threads(case)} in {names(case.victims, most=2)} "
        f"while {place(culprit.code)} holds {lock}{each}{case.passed_on}"
        f"{';' if case.passed_on else ':'} {share} of their time is spent waiting for it, "
        f"{percent(culprit.share)} of that for this code."
    )


def _when(case: LockCase) -> str:
    """Return for how much of the run somebody waited, if that was not nearly always."""
    wall_s = case.program.wall_s
    share = case.waited_s / wall_s if wall_s else 1.0
    return "" if share >= NEARLY_ALWAYS else f"For {percent(share)} of the run, "


def waiting_threads(case: LockCase, verb: str = "wait") -> str:
    """Return how many threads wait on average while any does: `7 of 8 threads wait`."""
    waiting = min(max(1, round(case.waiters)), max(1, case.users - 1))
    return f"{waiting} of {counted(case.users, 'thread')} {verb}{'s' * (waiting == 1)}"


def remedies(case: LockCase, severity: float) -> tuple[Remedy, ...]:
    """Return what lifts the serial share; a cheaper lock does not.

    Where holders are blocked in system calls for most of the time that is known, moving these out
    comes first.
    """
    high = 1.0 / (1.0 - severity)
    code = names(case.culprits, most=1)
    held = case.held
    is_known = held.total_s - held.parts["unknown"] >= LEAST_KNOWN * held.total_s > 0
    blocked = held.own_share("blocked")
    outside = case.culprits and is_known and blocked >= MOSTLY
    return (
        *((move_out(case, 1.0 / (1.0 - severity * blocked)),) if outside else ()),
        Remedy(
            "narrow",
            f"Move work in {code} out of the locked region, so that the lock covers only what "
            "must not run twice at a time.",
            None,
            1.0,
            high,
        ),
        Remedy(
            "shard",
            f"Give each independent part its own `{case.lock.name}`; then beware of taking two "
            "of them in different orders, and of code that re-enters while it holds one.",
            None,
            1.0,
            high,
        ),
    )
