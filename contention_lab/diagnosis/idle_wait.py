"""Finding `idle-wait`: threads wait since there is nothing to do. No fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contention_lab.analysis.coordination import Purpose
from contention_lab.diagnosis import (
    backpressure,
    load_imbalance,
    starved_by_producer,
    thundering_herd,
    writer_starvation,
)
from contention_lab.diagnosis.coordination_parties import waiting_places
from contention_lab.diagnosis.finding import IDLE_WAIT, Finding
from contention_lab.diagnosis.flow import Flow, flow
from contention_lab.diagnosis.thresholds import LEAST_SELF_SUPPLIED, LEAST_WAIT_S, MOSTLY
from contention_lab.diagnosis.wording import duration, names, percent

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    or a condition that comes from outside: nobody who waits there gives it, and whoever gives it
    is not working all the time to produce it (see `starved-by-producer`). It says that this
    waiting, which other tools show first, costs nothing; hence its severity is 0.
    """
    for one in file.awaited:
        if _is_idle(one) and not _is_explained(file, one):
            yield _finding(file, one)


def _is_explained(file: CaseFile, awaited: Awaited) -> bool:
    """Tell whether another finding is true of the same waits."""
    return (
        backpressure.is_true_of(awaited)
        or starved_by_producer.is_true_of(awaited)
        or load_imbalance.is_meeting(awaited)
        or (
            awaited.case.purpose in (Purpose.EVENT, Purpose.CONDITION)
            and thundering_herd.of_case(file, awaited) is not None
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
        and flow(awaited) is not Flow.FOR_ROOM
    )


def _finding(file: CaseFile, awaited: Awaited) -> Finding:
    case = awaited.case
    victims = waiting_places(file.trace, case)
    threads = len(case.waiters)
    who = "1 thread waits" if threads == 1 else f"{threads} threads wait"
    return Finding(
        kind=KIND,
        severity=0.0,
        summary=(
            f"No fault: {who} in {names(victims, most=2)} for "
            f"{percent(awaited.wait_share)} of the time, since there is nothing to do; "
            f"the {duration(case.wait_ns / 1e9)} of waiting cost nothing."
        ),
        lock=None,
        victims=victims,
        culprits=(),
        evidence=awaited.evidence(),
        remedies=(),
    )
