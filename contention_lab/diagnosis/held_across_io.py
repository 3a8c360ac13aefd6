"""Finding `held-across-io`: a lock is held while its holder waits for input, output or a timer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contention_lab.diagnosis.blocked_in import across, at_calls, calls_s, move_out
from contention_lab.diagnosis.finding import Finding, Remedy
from contention_lab.diagnosis.serialised_by_lock import waiting_threads
from contention_lab.diagnosis.thresholds import (
    LARGEST_SEVERITY,
    LEAST_BLOCKED,
    LEAST_KNOWN,
    LEAST_NATIVE_LOOKS,
    LEAST_SAMPLES,
    LEAST_WAIT_S,
    LEAST_WAIT_SHARE,
    MOST_BESIDE_IO,
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
    from collections.abc import Iterator

    from contention_lab.analysis.holding import HeldTime
    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.diagnosis.lock_case import LockCase

KIND: Final = "held-across-io"


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding for each lock it is true of.

    It is true if all of these are:

    - the threads that use the lock spend a tenth of their time or more waiting for it while code
      of another thread holds it;
    - what that thread did meanwhile is known for most of that time;
    - of the time its code is responsible for (not waiting for the GIL or a CPU) it was blocked in
      system calls for nearly all: input, output, sleep, other processes; or it was seen in them for
      most, so that each wait would be less than half as long without them, and all the rest was
      Python, which only prepares what is written or takes up what is read;
    - next to none of it was work of native code, which would go on one at a time if only the
      input and output were moved out of the lock.

    Severity is the share of the users' time.
    """
    for case in file.cases:
        finding = of_lock(at_calls(file.trace, case))
        if finding is not None:
            yield finding


def of_lock(case: LockCase) -> Finding | None:
    """Return the finding if it is true of a lock."""
    if case.total("wait_s") < LEAST_WAIT_S or case.blamed_wait_share < LEAST_WAIT_SHARE:
        return None
    if case.only_retried:
        return None
    if not case.culprits or not waits_outside(case.held):
        return None
    severity = min(case.blamed_wait_share, LARGEST_SEVERITY)
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


def waits_outside(held: HeldTime) -> bool:
    """Tell whether holders wait for the world outside, and do nothing else worth a word."""
    known = held.total_s - held.parts["unknown"]
    if known < LEAST_KNOWN * held.total_s or _works_natively(held):
        return False
    if held.own_share("blocked") >= LEAST_BLOCKED:
        return True
    # Nearly all can be told from a few samples; most takes more of them, or recorded calls.
    sampled_s = held.parts["blocked"] if held.samples >= LEAST_SAMPLES else 0.0
    return (
        max(sampled_s, sum(held.world.values())) > MOSTLY * held.own_s
        and held.own_share("blocked", "python", "native") >= 1.0 - MOST_BESIDE_IO
    )


def _works_natively(held: HeldTime) -> bool:
    return held.native_samples >= LEAST_NATIVE_LOOKS and held.own_share("native") > MOST_BESIDE_IO


def summary(case: LockCase) -> str:
    """Return the finding as a sentence."""
    culprit = case.culprits[0]
    times = case.holds.get(culprit.code)
    each = f", {duration(times.costly_s)} at a time" if times else ""
    return (
        f"{waiting_threads(case, 'stand')} still in {names(case.victims, most=2)} while "
        f"{place(culprit.code)} holds {lock_and_origin(case.lock)} across {across(case)}{each}: "
        f"{percent(case.wait_share)} of their time; do that outside the lock."
    )


def remedies(case: LockCase, severity: float) -> tuple[Remedy, ...]:
    """Return what takes the waiting out of the lock."""
    high = 1.0 / (1.0 - severity)
    return (
        move_out(case, high),
        Remedy(
            "hand-over",
            "Let one thread do it and give it the work through a queue, so that nobody waits.",
            None,
            1.0,
            high,
        ),
    )
