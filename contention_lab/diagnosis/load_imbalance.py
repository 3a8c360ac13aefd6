"""Finding `load-imbalance`: threads wait for one that has more to do than the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.coordination import Purpose
from contention_lab.analysis.sites import is_user_code
from contention_lab.analysis.windows import Windows
from contention_lab.diagnosis import uneven_tasks, uneven_threads
from contention_lab.diagnosis.coordination_parties import places, waiting_places
from contention_lab.diagnosis.finding import Finding, Remedy
from contention_lab.diagnosis.thresholds import (
    LARGEST_SEVERITY,
    LEAST_STRAGGLER,
    LEAST_WAIT_S,
    LEAST_WAIT_SHARE,
    LEAST_WORK_OF_OTHERS,
)
from contention_lab.diagnosis.wording import names, percent, place

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from contention_lab.diagnosis.awaited import Awaited
    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.diagnosis.finding import Party

KIND: Final = "load-imbalance"


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding for each meeting of threads, pool and group of threads it is true of.

    It is true of a meeting (a barrier, or an event or condition that the last of those who wait
    there sets by the code they wait in) if one thread ends most of the waiting, by coming last,
    and the time that equal shares of work would save is a tenth of the run or more. Equal threads
    take turns at coming last. Where it is no barrier, the others must have work of their own while
    the straggler works: else they wait for the one result that somebody fetches for all, or for
    their turn.

    Of a pool, and of threads that one place starts and another joins, see `uneven_tasks` and
    `uneven_threads`. The culprit is what the straggler does meanwhile. No lock is at fault.

    Severity is the share of the wall time that equal shares of work would save: no more than that
    during which nobody has the GIL, since threads have it one after another however it is shared.
    """
    for one in file.awaited:
        if is_meeting(one) and (found := _at_meeting(file, one)) is not None:
            yield found
    for uneven in (*uneven_tasks.found(file), *uneven_threads.found(file)):
        saved_share = _beside_gil(file, uneven.saved_share)
        if saved_share < LEAST_WAIT_SHARE:
            continue
        yield finding(
            file,
            saved_share,
            uneven.victims,
            uneven.culprits,
            f"{uneven.who} for {uneven.straggler} while the others have nothing left to do",
            uneven.evidence,
        )


def finding(
    file: CaseFile,
    saved_share: float,
    victims: tuple[Party, ...],
    culprits: tuple[Party, ...],
    what: str,
    evidence: dict[str, float | int | None],
) -> Finding:
    """Return the finding, where equal shares of work would save `saved_share` of the run."""
    severity = min(saved_share, LARGEST_SEVERITY)
    where = f", in {place(culprits[0].site)}" if culprits else ""
    return Finding(
        kind=KIND,
        severity=severity,
        summary=(
            f"{what}{where}: with equal shares of the work the program would need "
            f"{percent(severity)} less time."
        ),
        lock=None,
        victims=victims,
        culprits=culprits,
        evidence=evidence | {"saved_share": saved_share, "wall_s": file.program.wall_s},
        remedies=(
            Remedy(
                "balance",
                f"Divide the work of {names(culprits, most=1)} into equal or smaller parts, the "
                "largest first, or let threads take the next part when they are done.",
                None,
                1.0,
                1.0 / (1.0 - severity),
            ),
        ),
    )


def is_meeting(awaited: Awaited) -> bool:
    """Tell whether those who wait, and those who wake them, come to the same place."""
    case = awaited.case
    if case.purpose is Purpose.BARRIER:
        return True
    if case.purpose not in (Purpose.EVENT, Purpose.CONDITION) or not awaited.wakers:
        return False
    waiting, waking = (
        {
            (frame.filename, frame.function)
            for stack in set(stacks.tolist())
            for frame in awaited.trace.stack(stack)
            if is_user_code(frame.filename)
        }
        for stacks in (case.stack, case.waker_stack[case.waker != 0])
    )
    return bool(waiting) and waking == waiting


def _at_meeting(file: CaseFile, awaited: Awaited) -> Finding | None:
    case = awaited.case
    members = {*case.waiters, *case.wakers}
    wall_s = file.program.wall_s
    if not case.wakers or len(members) < 2 or not wall_s or case.wait_ns < LEAST_WAIT_S * 1e9:
        return None
    saved_share = _beside_gil(file, case.wait_ns / 1e9 / len(members) / wall_s)
    straggler, ended_ns = next(iter(case.wakers.items()))
    share = ended_ns / case.wait_ns
    if saved_share < LEAST_WAIT_SHARE or share < LEAST_STRAGGLER + 0.5 / len(members):
        return None
    if case.purpose is not Purpose.BARRIER and not _others_work(awaited, members, straggler):
        return None
    stacks = awaited.activity.stacks((straggler,), case.windows) or awaited.stacks
    others = len(members) - 1
    return finding(
        file,
        saved_share,
        waiting_places(file.trace, case),
        places(file.trace, stacks, ended_ns / 1e9),
        f"{others} thread{'s wait' if others > 1 else ' waits'} at every meeting for "
        f"`{file.trace.thread(straggler).label}`, which comes last for {percent(share)} of the "
        "waiting",
        awaited.evidence() | {"members": len(members), "straggler_share": share},
    )


def _beside_gil(file: CaseFile, saved_share: float) -> float:
    """Return what can be saved of a run, if nobody has the GIL for a shorter time than now."""
    held_share = file.gil.held_share if file.gil is not None else 0.0
    return min(saved_share, 1.0 - held_share)


def _others_work(awaited: Awaited, members: Collection[int], straggler: int) -> bool:
    """Tell whether the others work, too, for a part of the time that the straggler does."""
    case = awaited.case
    first, last = int(case.start_ns.min()), int(case.end_ns.max())
    period = Windows.union(np.array([first]), np.array([last]))
    own = awaited.activity.busy(straggler, period)
    beside = [awaited.activity.busy_ns(one, own) for one in members if one != straggler]
    return float(np.mean(beside)) >= LEAST_WORK_OF_OTHERS * own.total_ns
