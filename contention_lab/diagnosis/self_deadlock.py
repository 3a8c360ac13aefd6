"""Finding `self-deadlock`: a thread waits for a lock that it holds itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contention_lab.diagnosis.finding import Finding, Remedy
from contention_lab.diagnosis.lock_order_deadlock import explains, most_gain, share_of_wall
from contention_lab.diagnosis.standstill import standstills
from contention_lab.diagnosis.thresholds import LEAST_WAIT_S
from contention_lab.diagnosis.wording import duration, names, place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.diagnosis.finding import AccusedLock
    from contention_lab.diagnosis.standstill import Standstill

KIND: Final = "self-deadlock"


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding for each lock of which it is true.

    It is true if a thread (or a task) waited for a lock that it held itself during the whole wait,
    and the wait ended without the lock: by a timeout, an interrupt, or with the recording. Unless
    it still waited at the end, it did so for a hundredth of a second or more. A lock that is ever
    released by another thread than acquired it is a signal, and waiting for one's own is how it is
    used: of such a lock it is not said. Of a semaphore it is said only at the end of the recording,
    of a thread that took all permits that are out in code that has called what waits.

    Severity is the share of the wall time during which a thread stood so; where one did at the end
    of the recording, all of it, since it would have for ever.
    """
    alone = [one for one in file.deadlocks if one.is_alone]
    for still in standstills(file.trace, alone, file.locks):
        lock = still.locks[0]
        if lock is None or (still.lasted_s < LEAST_WAIT_S and not still.is_open):
            continue
        severity = share_of_wall(file, still)
        yield Finding(
            kind=KIND,
            severity=severity,
            summary=summary(still, lock),
            lock=lock,
            victims=still.victims,
            culprits=still.culprits,
            evidence={
                "deadlocks": len(still.deadlocks),
                "lasted_s": still.lasted_s,
                "wait_s": still.waited_s,
                "open": int(still.is_open),
                "path_share": file.path_share([lock]) or None,
            },
            remedies=remedies(still, lock, most_gain(file, still)),
            acquits=(lock,) if explains(file, still) else (),
        )


def summary(still: Standstill, lock: AccusedLock) -> str:
    """Return the finding as a sentence."""
    often = f" {len(still.deadlocks)} times" if len(still.deadlocks) > 1 else ""
    ended = "to the end of the recording" if still.is_open else "until it gave up"
    holder = still.culprits[0].code
    since = f", which it took in {place(holder)}" if holder else ""
    where = place(still.victims[0].site)
    release = "has given one back" if "Semaphore" in lock.type else "can let it go"
    kind = "task" if lock.type.startswith("asyncio.") else "thread"
    return (
        f"A {kind} waits{often} in {where} for `{lock.name}` while it holds it itself"
        f"{since}: {duration(still.lasted_s)} in all, {ended}; nobody else {release}."
    )


def remedies(still: Standstill, lock: AccusedLock, high: float) -> tuple[Remedy, ...]:
    """Return what keeps a thread from taking the lock twice."""
    inner = names(still.victims, most=1)
    split = Remedy(
        "split",
        f"Give {inner} a version for callers that hold `{lock.name}` already, and call that.",
        None,
        1.0,
        high,
    )
    if lock.type != "threading.Lock":
        return (split,)
    text = "Or make it an RLock, if the code inside may see what its caller has left half done."
    return split, Remedy("re-entrant", text, None, 1.0, high)
