"""Finding `gil-masked-lock`: threads wait for a lock; without it they would wait for the GIL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contention_lab.analysis.gil_use import held_share_between
from contention_lab.analysis.intervals import LAST_TIME_NS
from contention_lab.diagnosis.finding import Finding, Remedy
from contention_lab.diagnosis.serialised_by_lock import waiting_threads
from contention_lab.diagnosis.thresholds import (
    LARGEST_SEVERITY,
    LEAST_GIL_SATURATION,
    LEAST_KNOWN,
    LEAST_UNDER_GIL,
    LEAST_WAIT_S,
    LEAST_WAIT_SHARE,
)
from contention_lab.diagnosis.wording import lock_and_origin, names, percent, place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.diagnosis.lock_case import LockCase

KIND: Final = "gil-masked-lock"


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding for each lock it is true of, on builds with a GIL.

    It is true if all of these are:

    - the threads that use the lock spend a tenth of their time or more waiting for it while code
      of another thread holds it;
    - that thread is known to have done next to nothing meanwhile but run Python under the GIL (or
      wait for the GIL or a CPU to do so);
    - from the first wait for the lock to the end of the last, the GIL is held for most of the
      time, so that threads without the lock could not run Python in what is left.

    It is no fault of the lock: on a build without a GIL the same program would be limited by it.
    Severity is the share of the users' time.
    """
    if file.gil is None:
        return
    for at, case in enumerate(file.cases):
        waits = file.waits(at)
        share = held_share_between(
            file.trace,
            int(waits.start_ns.min(initial=LAST_TIME_NS)),
            int(waits.end_ns.max(initial=0)),
        )
        finding = of_lock(case, share) if share >= LEAST_GIL_SATURATION else None
        if finding is not None:
            yield finding


def of_lock(case: LockCase, gil_share: float) -> Finding | None:
    """Return the finding if it is true of a lock."""
    if case.total("wait_s") < LEAST_WAIT_S or case.blamed_wait_share < LEAST_WAIT_SHARE:
        return None
    if case.only_retried:
        return None
    held = case.held
    known = held.total_s - held.parts["unknown"]
    if known < LEAST_KNOWN * held.total_s or not case.culprits:
        return None
    if held.share("python", "gil", "preempted") < LEAST_UNDER_GIL or not held.parts["python"]:
        return None
    return Finding(
        kind=KIND,
        severity=min(case.blamed_wait_share, LARGEST_SEVERITY),
        summary=(
            f"{waiting_threads(case)} in {names(case.victims, most=2)} for "
            f"{lock_and_origin(case.lock)}, but {place(case.culprits[0].code)} only runs Python "
            f"while it holds it: without the lock they would wait for the GIL, which is held for "
            f"{percent(gil_share)} of the run."
        ),
        lock=case.lock,
        victims=case.victims,
        culprits=case.culprits,
        evidence={
            **case.evidence(),
            "gil_held_share": gil_share,
            "python_share_of_holds": held.share("python"),
        },
        remedies=(
            Remedy(
                "no-gil",
                "Use processes, native code that lets the GIL go, or a free-threaded build; there, "
                "narrow this lock as well. Narrowing it now gains nothing.",
                None,
                1.0,
                1.0 / (1.0 - min(case.blamed_wait_share, LARGEST_SEVERITY)),
            ),
        ),
    )
