"""Waits for native locks within holds of recorded locks, and the cores that are idle meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.critical_path import union_ns
from contention_lab.analysis.gil_blame import caused_ns
from contention_lab.analysis.intervals import bounded, bounds
from contention_lab.analysis.overlap import on_one_line
from contention_lab.trace.layer_schema import NativeWaitFlag

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from contention_lab.analysis import CriticalPath, ThreadTime
    from contention_lab.analysis.intervals import Spans
    from contention_lab.trace import Records, Trace

    Integers = npt.NDArray[np.int64]

FEWEST_LOOKS: Final = 3
"""Samples of the process from which it is said how many cores were idle."""
LEAST_OWN_CPU: Final = 0.2
"""Share of the CPU time that threads of libraries must use, for cores to be theirs in turn."""


def waited_within(waits: Records, holds: Spans) -> Integers:
    """Return how much of each hold its thread waited for a native lock, in nanoseconds.

    Parameters
    ----------
    waits
        Events of one lock, `schema.NATIVE_WAIT`. Those of one thread do not overlap.
    holds
        Recorded holds. A wait counts where it began within the hold, up to the hold's end.
    """
    if not len(waits) or not len(holds.index):
        return np.zeros(len(holds.index), dtype=np.int64)
    start, end = bounds(waits)
    thread = waits["thread"].astype(np.int64)
    holder = holds.thread.astype(np.int64)
    key, first, last = on_one_line(
        (thread, start), (holder, holds.start_ns), (holder, holds.end_ns)
    )
    order = np.argsort(key, kind="stable")
    until = np.concatenate([[0], np.cumsum((end - start)[order])])
    begin = np.searchsorted(key[order], first, side="left")
    stop = np.searchsorted(key[order], last, side="left")
    latest = order[np.maximum(stop - 1, 0)]
    beyond = np.where(stop > begin, np.maximum(0, end[latest] - holds.end_ns), 0)
    covered: Integers = until[stop] - until[begin] - beyond
    return covered


def idle_share(
    trace: Trace, waits: Records, cores: int | None, times: Sequence[ThreadTime]
) -> float:
    """Return the share of the cores that were idle while threads waited, as far as it is known.

    Looks at the process say how many threads wanted a core: on a busy machine more than could have
    run. CPU time, from the first wait to the end of the last, says how much they got: on a busy
    machine less than they wanted. The larger share counts; but where a library's own threads take a
    good part of the CPU time, the smaller one: such a library takes all cores for one call.

    Parameters
    ----------
    trace
        The trace.
    waits
        Events of one lock, `schema.NATIVE_WAIT`.
    cores
        Of the machine.
    times
        Of all threads.
    """
    if not cores or not len(waits):
        return 1.0
    start, end = bounds(waits)
    first, last = int(start.min()), int(end.max())
    native_s = _native_cpu_s(trace.load, first, last)
    cpu_s = native_s + sum(
        time.cpu_s * _part(time.thread.start_ns, time.thread.end_ns or last, first, last)
        for time in times
    )
    by_cpu = max(0.0, 1.0 - cpu_s / (cores * max(1, last - first) / 1e9))
    by_looks = _idle_in_looks(trace.load, start, end, cores)
    if by_looks is None:
        return by_cpu
    return min(by_cpu, by_looks) if native_s >= LEAST_OWN_CPU * cpu_s else max(by_cpu, by_looks)


def _part(begin: int, stop: int, first: int, last: int) -> float:
    """Return the share of a span that lies in another one."""
    return max(0, min(stop, last) - max(begin, first)) / max(1, stop - begin)


def _native_cpu_s(load: Records, first: int, last: int) -> float:
    """Return the CPU time of threads that Python did not make."""
    inside = load[(load["time_ns"] >= first) & (load["time_ns"] <= last)]
    growth = np.diff(inside["native_cpu_ns"].astype(np.float64))
    return float(np.maximum(growth, 0.0).sum()) / 1e9


def _idle_in_looks(load: Records, start: Integers, end: Integers, cores: int) -> float | None:
    """Return the share of the cores that nobody of the process wanted; None for too few looks."""
    time = bounded(load["time_ns"])
    begun = np.searchsorted(np.sort(start), time, side="right")
    ended = np.searchsorted(np.sort(end), time, side="left")
    during = begun > ended
    if np.count_nonzero(during) < FEWEST_LOOKS:
        return None
    wanted = load["runnable"].astype(np.int64) + load["native_runnable"]
    return float(np.maximum(0.0, 1.0 - wanted[during] / cores).mean())


def gil_waits_behind_s(trace: Trace, waits: Records) -> float:
    """Return how long threads waited for the GIL of one that had it and waited for a native lock.

    Parameters
    ----------
    trace
        The trace.
    waits
        Events of one lock, `schema.NATIVE_WAIT`.
    """
    with_gil = waits[waits["flags"] & int(NativeWaitFlag.STACK_LATER) != 0]
    return float(caused_ns(trace.gil_waits, with_gil).sum()) / 1e9


def path_share(trace: Trace, path: CriticalPath, waits: Records) -> float | None:
    """Return the share of the wall time that the critical path waits for native locks.

    That is when the path is with a thread that waits for one of them, or for the GIL of one that
    has it meanwhile. None where the path is with nobody known.

    Parameters
    ----------
    trace, path
        The trace and its path.
    waits
        Events of one lock, `schema.NATIVE_WAIT`.
    """
    if not path.wall_ns or not len(path.running.start_ns):
        return None
    start, end = bounds(waits)
    _, begin, stop = path.running.clipped(waits["native_id"].astype(np.int64), start, end)
    behind_ns = 0
    with_gil = waits[waits["flags"] & int(NativeWaitFlag.STACK_LATER) != 0]
    if len(with_gil) and len(trace.gil_waits):
        start, end = bounds(trace.gil_waits)
        ids, which = np.unique(trace.gil_waits["thread"], return_inverse=True)
        native = np.array([trace.thread(number).native_id for number in ids.tolist()])
        which, clipped_start, clipped_end = path.running.clipped(native[which], start, end)
        on_path = trace.gil_waits[which]
        on_path["start_ns"], on_path["end_ns"] = clipped_start, clipped_end
        behind_ns = int(caused_ns(on_path, with_gil).sum())
    return min(1.0, (union_ns(begin, stop) + behind_ns) / path.wall_ns)


def anybody_waits_s(waits: Records) -> float:
    """Return for how long any thread waited, in seconds."""
    return union_ns(*bounds(waits)) / 1e9
