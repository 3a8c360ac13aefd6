"""What the recorder says of itself, and what a trace cannot show.

Silence is a statement too: a page must say what was not recorded, dropped or cut, next to the
figures that depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contention_lab.report.quantity import count
from contention_lab.report.sampled_lines import pace_known
from contention_lab.trace import Clock, Level, not_seen

if TYPE_CHECKING:
    from contention_lab.trace import Trace


@dataclass(frozen=True, slots=True)
class RecorderFacts:
    """Figures about the recording of one run. Absent ones are None."""

    level: str
    clock: str
    duration_s: float
    waits: int
    holds: int
    threads: int
    locks: int
    dropped: int | None
    """Wait, hold and stack records lost; counters stay exact."""
    bytes_written: int | None
    writer_cpu_s: float | None
    self_s: float | None
    """Time the program's threads spent inside the recorder on contended paths."""
    complete: bool
    problems: tuple[str, ...]
    pace_known: bool
    """Of samples: it is known how much time one stands for."""
    limits: tuple[str, ...]
    """What this run's figures cannot show, one sentence each."""


def recorder_facts(trace: Trace) -> RecorderFacts:
    """Gather the facts of one trace."""
    status = trace.status
    dropped = (
        None
        if status is None
        else sum(int(status[f"dropped_{kind}"]) for kind in ("waits", "holds", "stacks"))
    )
    level = Level(trace.level)
    return RecorderFacts(
        "samples" if trace.is_sampled else level.name.lower(),
        "invariant TSC" if Clock(trace.clock) is Clock.TSC else "CLOCK_MONOTONIC",
        trace.duration_ns / 1e9,
        len(trace.waits),
        len(trace.holds),
        len(trace.threads),
        len(trace.locks),
        dropped,
        None if status is None else int(status["bytes_written"]),
        None if status is None else int(status["writer_cpu_ns"]) / 1e9,
        None if status is None else int(status["self_ns"]) / 1e9,
        bool(trace.complete),
        tuple(trace.problems),
        pace_known(trace),
        tuple(_limits(trace, level, dropped)),
    )


def _limits(trace: Trace, level: Level, dropped: int | None) -> list[str]:
    found = []
    if level is Level.COUNTERS:
        found.append("At level counters there are no stacks and no holds, only exact totals.")
    if level is Level.PROFILE and not trace.is_sampled:
        found.append(
            "At level profile only holds that blocked somebody are recorded one by one; the "
            "totals in the lock table count all of them."
        )
    if dropped:
        found.append(
            f"{count(dropped)} records were dropped because the writer could not keep up; "
            "totals in the lock table stay exact, flame graphs and the matrix lack them."
        )
    if not trace.complete:
        found.append("The recording was not closed in order: its last moments are missing.")
    found.extend(f"Not recorded: {sentence}." for sentence in not_seen(trace))
    found.extend(trace.problems)
    return found
