"""Finding `starved-by-producer`: consumers wait for items since making them takes too long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contention_lab.analysis.coordination import Purpose
from contention_lab.diagnosis.coordination_parties import kind_of_actors, waiting_places
from contention_lab.diagnosis.finding import Finding, Remedy
from contention_lab.diagnosis.flow import Flow, flow
from contention_lab.diagnosis.thresholds import (
    LARGEST_SEVERITY,
    LEAST_RUNNING,
    LEAST_SELF_SUPPLIED,
    LEAST_WAIT_S,
    LEAST_WAIT_SHARE,
    LEAST_WORK_OF_WAIT,
    MOSTLY,
)
from contention_lab.diagnosis.wording import counted, names, percent, place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contention_lab.diagnosis.awaited import Awaited
    from contention_lab.diagnosis.case_file import CaseFile

KIND: Final = "starved-by-producer"


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding for each queue or buffer it is true of.

    It is true if all of these are:

    - threads or tasks spend a tenth of their time or more waiting for items of it, and have work
      to do when they get some;
    - most of that waiting is ended by producers, who do not take items themselves;
    - while somebody waits, these are hardly ever in a recorded wait themselves, unless for the lock
      of the queue, to put something in;
    - and they work: they run, or are in functions that the code which puts the items calls. A
      producer that sleeps or reads where it puts them waits for work to arrive: that is
      `idle-wait`;
    - most of it is waiting again: for the first item everybody waits, while a pipeline fills;
    - it is not waited until others, one of whom is always inside, have left: they make nothing.

    Idle workers of an executor are not starved: nobody promised them work. No lock is at fault.

    Severity is the share of the wall time with somebody waiting and the producers busy.
    """
    return (_finding(file, one) for one in file.awaited if is_true_of(one))


def is_working(awaited: Awaited) -> bool:
    """Tell whether those waited for work, rather than wait for work themselves."""
    running = awaited.running_share >= LEAST_RUNNING
    return running or awaited.works_elsewhere >= LEAST_RUNNING


def is_true_of(awaited: Awaited) -> bool:
    """Tell whether it is true of one case."""
    case = awaited.case
    return (
        case.purpose in (Purpose.ITEM, Purpose.CONDITION, Purpose.PERMIT)
        and case.wait_ns >= LEAST_WAIT_S * 1e9
        and awaited.wait_share >= LEAST_WAIT_SHARE
        and case.woken_share >= MOSTLY
        and case.self_supplied_share < LEAST_SELF_SUPPLIED
        and awaited.work_share >= LEAST_WORK_OF_WAIT
        and awaited.is_bottleneck
        and case.again_share >= MOSTLY
        and not awaited.is_for_leaving
        and flow(awaited) is Flow.FOR_ITEM
        and is_working(awaited)
    )


def _finding(file: CaseFile, awaited: Awaited) -> Finding:
    case = awaited.case
    wall_s = file.program.wall_s
    severity = case.windows.total_ns / 1e9 * awaited.busy_share / wall_s if wall_s else 0.0
    severity = min(severity, LARGEST_SEVERITY)
    victims, culprits = waiting_places(file.trace, case), awaited.parties
    count = len(awaited.wakers)
    producers = "the producer is" if count == 1 else f"the {count} producers are"
    consumers = counted(len(case.waiters), "consumer")
    where = place(culprits[0].site) if culprits else "code outside the program"
    actor = kind_of_actors(file.trace, case.wakers)
    gain = file.program.largest_gain(severity, running=awaited.doing.running)
    return Finding(
        kind=KIND,
        severity=severity,
        summary=(
            f"{percent(awaited.wait_share)} of the time of {consumers} is spent "
            f"in {names(victims, most=2)}, waiting for something to work on, while {producers} "
            f"busy in {where} all the time: make that faster, or let several threads do it."
        ),
        lock=None,
        victims=victims,
        culprits=culprits,
        evidence=awaited.evidence(),
        remedies=(
            Remedy(
                "producers",
                f"Let several {actor}s (or processes, if it is Python that runs) do the work of "
                f"{names(culprits, most=1)}, or move some of it to the consumers.",
                None,
                1.0,
                gain,
            ),
        ),
    )
