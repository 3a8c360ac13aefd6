"""Finding `idle-wait`: threads wait since there is nothing to do. No fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contention_lab.analysis.coordination import Purpose
from contention_lab.analysis.processes import SHARED
from contention_lab.analysis.windows import Windows
from contention_lab.diagnosis import (
    backpressure,
    load_imbalance,
    starved_by_producer,
    thundering_herd,
    writer_starvation,
)
from contention_lab.diagnosis.coordination_parties import kind_of_actors, waiting_places
from contention_lab.diagnosis.finding import IDLE_WAIT, Finding
from contention_lab.diagnosis.flow import Flow, flow
from contention_lab.diagnosis.thresholds import (
    LEAST_BUSY,
    LEAST_SELF_SUPPLIED,
    LEAST_WAIT_S,
    LEAST_WAIT_SHARE,
    LEAST_WORK_OF_WAIT,
    MOSTLY,
)
from contention_lab.diagnosis.wording import counted, duration, names, percent, place
from contention_lab.trace import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contention_lab.analysis.coordination import CoordinationCase
    from contention_lab.diagnosis.awaited import Awaited
    from contention_lab.diagnosis.case_file import CaseFile

KIND: Final = IDLE_WAIT
PURPOSES: Final = frozenset(
    {
        *(Purpose.ITEM, Purpose.TASK, Purpose.EVENT, Purpose.CONDITION, Purpose.PERMIT),
        Purpose.INTERNAL,
    }
)


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding for each thing it is true of.

    It is true if threads or tasks spend most of their time waiting for an item, a task, an event
    or a condition that comes from outside: nobody who waits there gives it (nor gives signals that
    are made there, one for each wait, as in a lock of the program's own), and whoever gives it
    is not seen to work all the time to produce it (see `starved-by-producer`). It is not true if
    others wait for these threads meanwhile, and nobody ends their waiting before its time.

    No lock is at fault, hence its severity is 0. Whether the waiting costs something is another
    question: it says that it costs nothing only of threads that have next to nothing to do, and
    have not asked for anything by a signal of their own, and not of the main thread.
    """
    for one in file.awaited:
        if _is_idle(one) and not _is_explained(file, one) and not _is_in_the_way(file, one):
            yield _finding(file, one)


def _is_in_the_way(file: CaseFile, awaited: Awaited) -> bool:
    """Tell whether others wait for those who wait here, in vain for most of that."""
    case = awaited.case
    if case.woken_share >= MOSTLY:
        return False
    meanwhile_ns = 0
    for one in case.waiters:
        mine = case.thread == one
        windows = Windows.union(case.start_ns[mine], case.end_ns[mine])
        for other in file.coordination:
            for_it = (other.waker == one) & (other.thread != one)
            meanwhile_ns += int(
                windows.covered_ns(other.start_ns[for_it], other.end_ns[for_it]).sum()
            )
    return meanwhile_ns >= LEAST_WAIT_SHARE * file.trace.duration_ns


def _is_explained(file: CaseFile, awaited: Awaited) -> bool:
    """Tell whether another finding is true of the same waits."""
    return (
        awaited.is_for_leaving
        or backpressure.is_true_of(awaited)
        or starved_by_producer.is_true_of(awaited)
        or load_imbalance.is_meeting(awaited)
        or (
            awaited.case.purpose in (Purpose.EVENT, Purpose.CONDITION)
            and thundering_herd.of_case(file, awaited) is not None
        )
        or (
            awaited.case.purpose is Purpose.EVENT
            and writer_starvation.of_event(file, awaited) is not None
        )
        or (
            awaited.case.purpose is Purpose.CONDITION
            and writer_starvation.of_condition(file, awaited) is not None
        )
    )


def _is_idle(awaited: Awaited) -> bool:
    case = awaited.case
    return (
        case.purpose in PURPOSES
        and case.wait_ns >= LEAST_WAIT_S * 1e9
        and awaited.wait_share >= MOSTLY
        and case.self_supplied_share < LEAST_SELF_SUPPLIED
        and not awaited.is_mutual
        and flow(awaited) is not Flow.FOR_ROOM
    )


def _finding(file: CaseFile, awaited: Awaited) -> Finding:
    case = awaited.case
    victims = waiting_places(file.trace, case)
    wait = "waits" if len(case.waiters) == 1 else "wait"
    actor = kind_of_actors(file.trace, case.waiters)
    recorded = "recorded " if awaited.asks else ""
    # Of a recording that is cut or damaged, what limits the program may come after it.
    known = "As far as the recording goes, no" if file.trace.problems else "No"
    return Finding(
        kind=KIND,
        severity=0.0,
        summary=(
            f"{known} {recorded}lock is at fault: {counted(len(case.waiters), actor)} {wait} in "
            f"{names(victims, most=2)} for {percent(awaited.wait_share)} of the time, "
            f"{_reason(file, awaited)}."
        ),
        lock=None,
        victims=victims,
        culprits=(),
        evidence=awaited.evidence(),
        remedies=(),
    )


def _woken_by_unknown(case: CoordinationCase) -> float:
    """Return the share of the waiting that somebody has ended who is not known.

    Conditions of native code do not say who signals.
    """
    length_ns = case.end_ns - case.start_ns
    unknown = (case.outcome[case.last] == Outcome.ACQUIRED) & (case.ender == 0)
    return float(length_ns[unknown].sum() / case.wait_ns) if case.wait_ns else 0.0


def _reason(file: CaseFile, awaited: Awaited) -> str:
    """Say why they wait, and what is known of its cost."""
    case = awaited.case
    it = "it" if len(case.waiters) == 1 else "them"
    parties = awaited.parties
    giver = place(parties[0].site) if parties else "code outside the program"
    if case.purpose not in (Purpose.ITEM, Purpose.TASK) and case.woken_share < MOSTLY:
        if _woken_by_unknown(case) >= MOSTLY:
            return f"and for most of that it is not recorded who wakes {it}"
        return f"and for most of that nobody wakes {it}: a timeout does, or nothing"
    has_work = awaited.work_share >= LEAST_WORK_OF_WAIT
    # A lock that is used as a signal may be part of a lock that the program has made itself.
    is_for_work = case.purpose is not Purpose.PERMIT or "emaphore" in case.lock.type
    if (
        is_for_work
        and not awaited.asks
        and not has_work
        and not any(file.trace.thread(one).is_main for one in case.waiters)
    ):
        waited = duration(case.wait_ns / 1e9)
        return f"since there is nothing to do; the {waited} of waiting cost nothing"
    if not awaited.wakers and case.lock.type.startswith(SHARED):
        return (
            "for items that come from another process: no fault, but if they come too slowly, that "
            "process is what limits the program"
        )
    if awaited.busy_share < LEAST_BUSY:
        return f"for others that wait themselves for most of that time ({giver} wakes {it})"
    if not has_work:
        return f"for {giver} to let {it} go on"
    return (
        f"for {giver} to give {it} something to do: no fault if work arrives there, but if it is "
        "made or fetched there, that is what limits the program"
    )
