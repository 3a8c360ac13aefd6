"""Finding `backpressure`: producers wait for room since a consumer is busy with what it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contention_lab.analysis.coordination import Purpose
from contention_lab.diagnosis.coordination_parties import kind_of_actors, waiting_places
from contention_lab.diagnosis.finding import Finding, Remedy
from contention_lab.diagnosis.flow import Flow, flow
from contention_lab.diagnosis.thresholds import (
    LARGEST_SEVERITY,
    LEAST_WAIT_S,
    LEAST_WAIT_SHARE,
    MOST_TAKES_OF_CONSUMER,
    MOSTLY,
)
from contention_lab.diagnosis.wording import counted, names, percent, place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contention_lab.diagnosis.awaited import Awaited
    from contention_lab.diagnosis.case_file import CaseFile

KIND: Final = "backpressure"


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding for each queue or buffer it is true of.

    It is true if all of these are:

    - threads or tasks spend a tenth of their time or more waiting for room in it;
    - most of that waiting is ended by consumers that take something out;
    - while somebody waits, these are hardly ever in a recorded wait themselves, unless for the lock
      of the buffer, to take something out: it is their own code that takes the time, and a larger
      buffer would only fill up later.

    In a buffer that the program has made of conditions, or of semaphores that producers take and
    consumers give back, waiting is for room where those waited for consume: see `flow`. Consumers
    of a full buffer end a wait nearly every time they take the lock of its condition; readers take
    it to come in and to leave, and so at most every other time. No lock is at fault.

    Severity is the share of the wall time with somebody waiting and the consumers busy.
    """
    return (_finding(file, one) for one in file.awaited if is_true_of(one))


def is_true_of(awaited: Awaited) -> bool:
    """Tell whether it is true of one case."""
    case = awaited.case
    return (
        case.purpose in (Purpose.ROOM, Purpose.CONDITION, Purpose.PERMIT)
        and case.wait_ns >= LEAST_WAIT_S * 1e9
        and awaited.wait_share >= LEAST_WAIT_SHARE
        and case.woken_share >= MOSTLY
        and awaited.is_bottleneck
        and flow(awaited) is Flow.FOR_ROOM
        and (
            case.purpose is not Purpose.CONDITION
            or awaited.takes_per_wakeup < MOST_TAKES_OF_CONSUMER
        )
    )


def _finding(file: CaseFile, awaited: Awaited) -> Finding:
    case = awaited.case
    wall_s = file.program.wall_s
    severity = case.windows.total_ns / 1e9 * awaited.busy_share / wall_s if wall_s else 0.0
    severity = min(severity, LARGEST_SEVERITY)
    victims, culprits = waiting_places(file.trace, case), awaited.parties
    actor = kind_of_actors(file.trace, case.wakers)
    producers = counted(len(case.waiters), "producer")
    return Finding(
        kind=KIND,
        severity=severity,
        summary=(
            f"{percent(awaited.wait_share)} of the time of {producers} is spent "
            f"in {names(victims, most=2)}, waiting for room, since {_consumers(awaited)} busy in "
            f"{place(culprits[0].site) if culprits else 'code outside the program'} for "
            f"{percent(awaited.busy_share)} of it: make that faster or add consumers; more room "
            "would only fill up later."
        ),
        lock=None,
        victims=victims,
        culprits=culprits,
        evidence=awaited.evidence(),
        remedies=(
            Remedy(
                "consumers",
                f"Let more {actor}s do the work of {names(culprits, most=1)} at a time, or make it "
                "faster: it limits the program.",
                None,
                1.0,
                file.program.largest_gain(severity, running=awaited.doing.running),
            ),
        ),
    )


def _consumers(awaited: Awaited) -> str:
    count = len(awaited.wakers)
    return "the consumer is" if count == 1 else f"the {count} consumers are"
