"""What each thread spent its time on.

Sums come from counters and thread records, so they are exact whatever was dropped; waiting for
events and items comes from wait records.

The parts are measured by different clocks (CPU time and wall time), so each is bounded by what the
others leave: none is negative, and together they are at most the wall time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.analysis.distinct import places, values
from contention_lab.analysis.intervals import coordination_waits, lock_waits
from contention_lab.trace import Outcome, Thread

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

    from contention_lab.trace import Trace


@dataclass(frozen=True, slots=True)
class ThreadTime:
    """The time of one thread, in seconds.

    Attributes
    ----------
    thread
        The thread.
    wall_s
        From its first event to its end, or the end of the recording.
    run_s
        On a CPU doing the program's work: its CPU time without that spent spinning. Where CPU
        time in spin loops was not measured, the wall time in them is taken for it.
    spin_s
        In spin loops, wall time.
    park_s
        Asleep, waiting for a lock. Waits still open at the end of the recording count here.
    gil_s
        Waiting for the GIL: with the layer below Python all of it, else only with a lock already
        acquired, or to try a spinlock seen free.
    coordination_s
        Waiting for events, items or threads.
    cpu_s
        CPU time, spinning included.
    """

    thread: Thread
    wall_s: float
    run_s: float
    spin_s: float
    park_s: float
    gil_s: float
    coordination_s: float
    cpu_s: float

    @property
    def other_s(self) -> float:
        """The rest: off the CPU for reasons not seen here (preempted, input and output).

        Without the layer below Python also waiting for the GIL where there was no lock.
        """
        known = self.run_s + self.spin_s + self.park_s + self.gil_s + self.coordination_s
        return max(0.0, self.wall_s - known)


ONLY_WAITS: Final = 0.95
"""Share of its time from which a thread that waits for others does nothing else."""


def working(times: Iterable[ThreadTime]) -> tuple[ThreadTime, ...]:
    """Leave out the threads that only waited for others to finish, as a main thread in `join`.

    They take no part in the work that a sum over threads is about.
    """
    return tuple(time for time in times if time.coordination_s < ONLY_WAITS * time.wall_s)


def thread_time(trace: Trace, *, tasks: bool = False) -> tuple[ThreadTime, ...]:
    """Return the time of every thread, in the order of their ids.

    Tasks are left out unless asked for: they run on threads, and their time is the threads'.
    """
    counters = trace.counters
    spin, spin_cpu, park, gil = (
        _by_thread(counters["thread"], counters[name])
        for name in ("spin_ns", "spin_cpu_ns", "park_ns", "gil_ns")
    )
    waits, coordination = lock_waits(trace), coordination_waits(trace)
    before = trace.wait_columns["gil_before_ns"]
    gil_before = _by_thread(trace.wait_columns["thread"][before > 0], before[before > 0])
    totals = trace.gil_totals
    gil_all = _by_thread(totals["thread"], totals["wait_ns"])
    still = waits.where(waits.of(trace.wait_columns["outcome"]) == Outcome.OPEN)
    open_ns = _by_thread(still.thread, still.length_ns)
    coordination_ns = _by_thread(coordination.thread, coordination.length_ns)
    times = []
    threads = (thread for thread in trace.threads.values() if tasks or not thread.is_task)
    for thread in sorted(threads, key=lambda thread: thread.id):
        end_ns = thread.end_ns or max(trace.duration_ns, thread.start_ns)
        wall_s = left_s = max(0, end_ns - thread.start_ns) / 1e9
        cpu_s = min(thread.cpu_ns / 1e9, wall_s)
        spinning_cpu_s = _of(spin_cpu, thread) or _of(spin, thread)
        parts = {
            "run_s": max(0.0, cpu_s - spinning_cpu_s),
            "spin_s": _of(spin, thread),
            "park_s": _of(park, thread) + _of(open_ns, thread),
            "gil_s": max(_of(gil_all, thread), _of(gil, thread) + _of(gil_before, thread)),
            "coordination_s": _of(coordination_ns, thread),
        }
        for name, wanted_s in parts.items():
            parts[name] = min(wanted_s, left_s)
            left_s -= parts[name]
        times.append(ThreadTime(thread, wall_s=wall_s, cpu_s=cpu_s, **parts))
    return tuple(times)


def _of(by_thread: Mapping[int, float], thread: Thread) -> float:
    return by_thread.get(thread.id, 0.0)


def _by_thread(
    thread: npt.NDArray[np.integer[Any]], ns: npt.NDArray[np.integer[Any]]
) -> dict[int, float]:
    """Return sums in seconds by thread id."""
    ids = values(thread)
    sums = np.bincount(places(ids, thread), weights=ns, minlength=len(ids)) / 1e9
    return dict(zip(ids.tolist(), sums.tolist(), strict=True))
