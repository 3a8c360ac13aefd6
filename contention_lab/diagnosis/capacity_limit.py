"""Finding `capacity-limit`: all permits are out, and it is their number that is waited for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.coordination import Purpose
from contention_lab.analysis.permits import never_returned, permits
from contention_lab.diagnosis.coordination_parties import places, waiting_places
from contention_lab.diagnosis.finding import Finding, Remedy
from contention_lab.diagnosis.lock_case import accused_lock
from contention_lab.diagnosis.thresholds import (
    LARGEST_SEVERITY,
    LEAST_AT_WORK,
    LEAST_HERD,
    LEAST_SELF_SUPPLIED,
    LEAST_WAIT_S,
    LEAST_WAIT_SHARE,
    LONGEST_SINGLE_HOLD,
    MOSTLY,
)
from contention_lab.diagnosis.wording import lock_and_origin, names, percent
from contention_lab.diagnosis.wording import number as written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contention_lab.diagnosis.awaited import Awaited
    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.diagnosis.lock_case import LockCase

KIND: Final = "capacity-limit"


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding for each semaphore and each stock of resources it is true of.

    It is true of a semaphore if all of these are:

    - the threads or tasks that use it wait for a permit for a tenth of their time or more;
    - two or more permits are out at a time: with one it is a lock, and its holder is to blame;
    - no single holder has them: of three users or more, none has permits for half of the time
      that they are out.

    And it is true of things that lie in a queue, or are guarded by a condition, and are put back
    there by those who take them (connections, licences), if threads wait for one for a tenth of
    their time, those who put them back wait for them, too, one is woken at a time, and while
    somebody waits more than one of them is at work: those who take turns at one thing share none.

    Where threads have ended without giving permits back, the limit may be high enough, and it is
    told that these are missing.

    Severity is the share of their time that users wait, but not more than the machine has left to
    give. What every user does with a permit is the culprit: with more permits more would do it.
    """
    for number, case in enumerate(file.cases):
        if "Semaphore" not in case.lock.type:
            continue
        if (found := _of_semaphore(file, number, case)) is not None:
            yield found
    for one in file.awaited:
        if one.case.purpose in (Purpose.ITEM, Purpose.CONDITION):
            found = _of_stock(file, one)
            if found is not None:
                yield found


def _of_semaphore(file: CaseFile, number: int, case: LockCase) -> Finding | None:
    if case.total("wait_s") < LEAST_WAIT_S or case.wait_share < LEAST_WAIT_SHARE:
        return None
    locks = [row.lock.id for row in case.rows]
    out = permits(file.trace, locks)
    if out.most < 2 or (len(out.holders) > 2 and out.largest_share >= LONGEST_SINGLE_HOLD):
        return None
    severity = min(case.wait_share, case.idle_share, LARGEST_SEVERITY)
    lived_s = _lived_s(file, number, case)
    working_s = lived_s - case.total("wait_s")
    # Little's law: how many are out at a time if nobody waits for one.
    needed = case.users * out.held_s / working_s if working_s > 0 else float(case.users)
    needed = min(needed, float(case.users))
    most_saved = min(max(severity, case.total("wait_s") / lived_s), case.idle_share)
    lock = lock_and_origin(case.lock)
    waiting = (
        f"{case.users} users spend {percent(case.wait_share)} of their time waiting for one in "
        f"{names(case.victims, most=2)}"
    )
    lost = never_returned(file.trace, locks)
    if lost:
        which = f"{lost} permit{'s' if lost > 1 else ''} of {lock}"
        summary = (
            f"{which} {'were' if lost > 1 else 'was'} taken by threads that ended without giving "
            f"{'them' if lost > 1 else 'it'} back, and {waiting}: give back what is taken, also "
            "where an exception passes."
        )
    else:
        summary = (
            f"All {out.most} permits of {lock} are out, and {waiting}; nobody has one for long, "
            f"the limit is too low: about {written(max(1.0, needed))} would be out if nobody "
            "waited."
        )
    remedies = _remedies(min(most_saved, LARGEST_SEVERITY), enough_permits(out.most, needed))
    return Finding(
        kind=KIND,
        severity=severity,
        summary=summary,
        lock=case.lock,
        victims=case.victims,
        culprits=case.culprits,
        evidence=case.evidence()
        | {
            "permits": out.most,
            "needed_permits": needed,
            "holders": len(out.holders),
            "largest_holder_share": out.largest_share,
            **({"permits_not_returned": lost} if lost else {}),
        },
        remedies=(_give_back(case.lock.name, remedies[0]), *remedies) if lost else remedies,
    )


def _give_back(lock: str, other: Remedy) -> Remedy:
    """Return what keeps permits from getting lost, with the same bounds as another remedy."""
    text = f"Take permits of `{lock}` with `with`, or give them back in a `finally`."
    return Remedy("give-back", text, None, 1.0, other.speedup_high)


def _lived_s(file: CaseFile, number: int, case: LockCase) -> float:
    """Return how long the users of a semaphore lived together.

    When a task ends is not recorded: it lives until it was last seen at the semaphore, at least.
    """
    waits, holds = file.spans(number)
    threads = np.concatenate([waits.thread, holds.thread])
    ends = np.concatenate([waits.end_ns, holds.end_ns])
    ids, which = np.unique(threads, return_inverse=True)
    last = np.zeros(len(ids), dtype=np.int64)
    np.maximum.at(last, which, ends)
    unseen_s = 0.0
    for one, end in zip(ids.tolist(), last.tolist(), strict=True):
        known = file.trace.thread(one)
        if known.is_task and not known.end_ns:
            unseen_s += (file.activity.life(one)[1] - end) / 1e9
    return max(case.user_wall_s - unseen_s, case.total("wait_s"))


def _of_stock(file: CaseFile, awaited: Awaited) -> Finding | None:
    case, wall_s = awaited.case, file.program.wall_s
    if (
        case.wait_ns < LEAST_WAIT_S * 1e9
        or awaited.wait_share < LEAST_WAIT_SHARE
        or case.woken_share < MOSTLY
        or case.self_supplied_share < LEAST_SELF_SUPPLIED
        or not wall_s
    ):
        return None
    members = {*case.waiters, *case.wakers}
    busy_ns = sum(file.activity.busy_ns(one, case.windows) for one in members)
    at_work = busy_ns / case.windows.total_ns
    woken_together = len(case.index) / (int(case.batch.max(initial=0)) + 1)
    if at_work < LEAST_AT_WORK or woken_together >= LEAST_HERD:
        return None
    severity = min(awaited.wait_share, LARGEST_SEVERITY)
    lock = accused_lock(case.lock, len(case.locks))
    victims = waiting_places(file.trace, case)
    users = len(members)
    return Finding(
        kind=KIND,
        severity=severity,
        summary=(
            f"{users} threads share what lies in {lock_and_origin(lock)}, and "
            f"{percent(awaited.wait_share)} of their time is spent waiting in "
            f"{names(victims, most=2)} until another one puts something back: there is too little "
            "of it."
        ),
        lock=lock,
        victims=victims,
        culprits=places(file.trace, awaited.stacks, case.wait_ns / 1e9),
        evidence=awaited.evidence()
        | {
            "users": users,
            "self_supplied_share": case.self_supplied_share,
            "at_work": at_work,
        },
        remedies=_remedies(severity),
    )


def enough_permits(now: int, needed: float) -> int:
    """Return how many permits nearly nobody would wait for, more than there are."""
    return max(now + 1, math.ceil(needed))


def _remedies(severity: float, limit: int | None = None) -> tuple[Remedy, ...]:
    high = 1.0 / (1.0 - severity)
    to = "" if limit is None else f" to {limit}"
    return (
        Remedy(
            "raise",
            f"Raise the limit{to}, if what it protects can take more at a time.",
            None,
            1.0,
            high,
        ),
        Remedy(
            "shorten",
            "Give back earlier: what is done with a permit but does not need it comes after.",
            None,
            1.0,
            high,
        ),
    )
