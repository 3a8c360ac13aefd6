"""What a sweep takes from the trace of a point: thread time, the lock table, hold times.

It reads tables and accuses nobody. A lock is followed through the thread counts by its label, since
every point is a process of its own and ids mean nothing between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contention_lab.analysis import LockRow, lock_table, thread_time, working
from contention_lab.trace import Trace, load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class TracedRun:
    """The traced run of one point.

    Attributes
    ----------
    thread_s
        Seconds by what threads spent them on ("run", "spin", "park", "gil", "coordination"), all
        threads together.
    locks
        The lock table, worst first.
    """

    trace: Trace
    thread_s: Mapping[str, float]
    locks: Sequence[LockRow]

    def hold_s(self, label: str | None) -> float:
        """Return for how long the lock of that label was held, 0 where it was not.

        Where several locks have the label (one per graph, made at one place) it is the one held
        longest: they do not exclude each other.
        """
        return max((row.hold_s for row in self.locks if row.lock.label == label), default=0.0)


def read_traced_run(path: Path) -> TracedRun:
    """Read a point's trace.

    Raises
    ------
    TraceError
        The file is no trace.
    """
    trace = load(path)
    times = working(thread_time(trace))
    return TracedRun(
        trace,
        {
            "run": sum(time.run_s for time in times),
            "spin": sum(time.spin_s for time in times),
            "park": sum(time.park_s for time in times),
            "gil": sum(time.gil_s for time in times),
            "coordination": sum(time.coordination_s for time in times),
        },
        lock_table(trace),
    )


def worst_label(runs: Mapping[int, TracedRun]) -> str | None:
    """Return the label of the lock that was waited for longest, at the most threads with waiting.

    Parameters
    ----------
    runs
        Traced runs of one variant, by number of threads.

    Returns
    -------
    str or None
        The lock held longest where nobody ever waited, None where there is no lock.
    """
    for threads in sorted(runs, reverse=True):
        worst = next((row for row in runs[threads].locks if row.wait_s > 0), None)
        if worst is not None:
            return worst.lock.label
    rows = [row for run in runs.values() for row in run.locks]
    return max(rows, key=lambda row: row.hold_s).lock.label if rows else None
