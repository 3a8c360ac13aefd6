"""Finding `async-lock-across-await`: tasks queue for a lock whose holder awaits something."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contention_lab.analysis.permits import permits
from contention_lab.diagnosis.event_loop_blocked import busy_share
from contention_lab.diagnosis.finding import Finding, Remedy
from contention_lab.diagnosis.thresholds import (
    IDLE_LOOP,
    LARGEST_SEVERITY,
    LEAST_WAIT_S,
    LEAST_WAIT_SHARE,
)
from contention_lab.diagnosis.wording import duration, lock_and_origin, names, percent, place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.diagnosis.lock_case import LockCase

KIND: Final = "async-lock-across-await"


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding for each lock of tasks it is true of.

    It is true if the tasks that use an asyncio lock, or a semaphore of which one permit is out at a
    time, wait for it for a tenth of their time or more, and the event loop has little to do
    meanwhile. A task that waits for such a lock finds the holder in the middle of an `await`, since
    only one of them runs at a time: it is what is awaited under the lock that takes the time, and
    with an idle loop it is not the work there is. No thread waits for anything.

    Severity is the share of their time that tasks wait for it.
    """
    return (found for case in file.cases if (found := _of(file, case)) is not None)


def _of(file: CaseFile, case: LockCase) -> Finding | None:
    if not case.lock.type.startswith("asyncio."):
        return None
    if case.total("wait_s") < LEAST_WAIT_S or case.blamed_wait_share < LEAST_WAIT_SHARE:
        return None
    ids = [row.lock.id for row in case.rows]
    if "Semaphore" in case.lock.type and permits(file.trace, ids).most > 1:
        return None
    loop_busy = busy_share(file)
    if loop_busy > IDLE_LOOP:
        return None
    severity = min(case.blamed_wait_share, LARGEST_SEVERITY)
    culprit = case.culprits[0] if case.culprits else None
    where = place(culprit.site) if culprit else "its holder"
    held = case.holds.get(culprit.code) if culprit else None
    each = f", {duration(held.costly_s)} at a time" if held else ""
    return Finding(
        kind=KIND,
        severity=severity,
        summary=(
            f"{case.users} tasks spend {percent(case.wait_share)} of their time in "
            f"{names(case.victims, most=2)}, waiting for {lock_and_origin(case.lock)}, which "
            f"is held across an `await` in {where}{each}, and the loop has nothing to do: await "
            "outside of the lock."
        ),
        lock=case.lock,
        victims=case.victims,
        culprits=case.culprits,
        evidence=case.evidence() | {"loop_busy_share": loop_busy},
        remedies=(
            Remedy(
                "await-outside",
                "Decide under the lock, release it, and await then; under it only what must not be "
                "interleaved with other tasks.",
                None,
                1.0,
                1.0 / (1.0 - severity),
            ),
            Remedy(
                "shard",
                f"Give each independent part its own `{case.lock.name}`.",
                None,
                1.0,
                1.0 / (1.0 - severity),
            ),
        ),
    )
