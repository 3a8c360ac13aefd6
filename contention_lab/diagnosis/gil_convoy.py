"""Finding `gil-convoy`: threads that come back from blocking calls wait for one that computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.diagnosis.busy_polling import pollers
from contention_lab.diagnosis.finding import Finding, Remedy
from contention_lab.diagnosis.gil_bound import competition, spins
from contention_lab.diagnosis.gil_parties import caused_share, gil_parties
from contention_lab.diagnosis.native_lock import share_of_gil_waits
from contention_lab.diagnosis.thresholds import (
    LARGEST_SEVERITY,
    LEAST_INTERVALS,
    LEAST_KEPT,
    LEAST_RETURNS,
    LEAST_WAIT_S,
    LEAST_WAIT_SHARE,
)
from contention_lab.diagnosis.wording import acting, duration, names, percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contention_lab.diagnosis.case_file import CaseFile

KIND: Final = "gil-convoy"


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding if it is true of the program, on a build with a GIL.

    It is true if all of these are:

    - some threads need the GIL only briefly at a time, between blocking calls;
    - each time they want it back they wait for about a switch interval or more, and that adds up
      to a tenth or more of their time;
    - meanwhile another thread keeps the GIL for as long as it may, and runs: one that needs it
      briefly keeps it, too, if its core is taken away just then, which is the machine's doing.

    Severity is the share of the time of all threads that compete for the GIL.
    """
    gil = file.gil
    if gil is None or not gil.sampled or spins(file):
        return
    field = competition(gil, pollers(file.trace))
    late = tuple(
        one
        for one in field.light
        if one.wait_s >= LEAST_WAIT_SHARE * one.wall_s
        and one.returns >= LEAST_RETURNS
        and one.wait_each_s >= LEAST_INTERVALS * gil.switch_interval_s
    )
    keepers = [
        one.thread.id
        for one in field.hungry
        if one.ran_each_s >= LEAST_KEPT * gil.switch_interval_s
    ]
    waiting = [one.thread.id for one in late]
    kept_share = caused_share(file.trace, waiting, keepers)
    wait_s = sum(one.wait_s for one in late) * kept_share
    lived_s = sum(one.wall_s for one in late)
    of_gil = 1.0 - share_of_gil_waits(file)
    severity = min(field.waiting(late) * kept_share * of_gil, LARGEST_SEVERITY)
    if not keepers or wait_s * of_gil < max(LEAST_WAIT_S, LEAST_WAIT_SHARE * lived_s):
        return
    victims, culprits = gil_parties(file.trace, waiting, keepers, wait_s)
    each_s = float(np.median([one.wait_each_s for one in late]))
    several = "s" * (len(late) != 1)
    yield Finding(
        kind=KIND,
        severity=severity,
        summary=(
            f"{len(late)} thread{several} that do{'es' * (not several)} little between blocking "
            f"calls wait{'s' * (not several)} for the GIL {duration(each_s)} at a time, "
            f"{percent(wait_s / lived_s)} of the time, because "
            f"{acting(culprits, 'keep')} it for a switch interval "
            f"({duration(gil.switch_interval_s)}) each time; no lock is at fault."
        ),
        lock=None,
        victims=victims,
        culprits=culprits,
        evidence={
            "gil_wait_s": wait_s,
            "wait_each_s": each_s,
            "threads": len(late),
            "computing_threads": len(keepers),
            "gil_held_share": gil.held_share,
            "switch_interval_s": gil.switch_interval_s,
        },
        remedies=(
            Remedy(
                "move-computing-out",
                f"Move the computing in {names(culprits, most=1)} to another process, or into "
                "native code that lets the GIL go.",
                None,
                1.0,
                1.0 / (1.0 - severity),
            ),
            Remedy(
                "switch-interval",
                "Make the switch interval shorter (`sys.setswitchinterval(0.0005)`): the threads "
                "that wait get the GIL back sooner, and the computing takes a little longer.",
                None,
                1.0,
                1.0 / (1.0 - severity),
            ),
        ),
    )
