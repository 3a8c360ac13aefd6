"""What the trace of a program that is not Python leaves open, as far as the rest of it tells.

Its locks are the C library's, which tells of a release that others wait for, but not when a thread
took the lock that it found free. Such a hold is written with no length. Since somebody has been
waiting all the time, it lasts from the last moment at which another thread let go of the lock, or
got it after a wait, and at most from when the waiting began: a lock that is free goes to whoever
waits for it, or takes it in passing.

Nor is the CPU time of a spinning thread measured. It wants a core all the time, as threads do that
are in no wait: they share what the process got.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.intervals import bounded
from contention_lab.trace import Outcome, WaitKind

if TYPE_CHECKING:
    import numpy.typing as npt

    from contention_lab.trace import Records, Trace

    Integers = npt.NDArray[np.int64]


LATE_NS: Final = 200_000
"""Locks in code of its own a program releases before the call that wakes others, which is seen."""


def is_native_program(trace: Trace) -> bool:
    """Tell whether the recorded program is not Python."""
    python = trace.meta.get("python")
    return isinstance(python, dict) and python.get("implementation") == ""


def completed(trace: Trace) -> Trace:
    """Return the trace of a program that is not Python with holds as long as they are known to be.

    Waits in spin loops have the CPU time that they took, if all threads that want a core get the
    same. Of other programs it is the same trace.
    """
    return _with_spin_cpu(_with_starts(trace)) if is_native_program(trace) else trace


def _with_starts(trace: Trace) -> Trace:
    holds = trace.holds
    if not (holds["start_ns"] == holds["end_ns"]).any():
        return trace
    changed = holds.copy()
    waits = trace.waits
    waits = waits[waits["kind"] == WaitKind.CONTENTION]
    for lock in np.unique(holds["lock"]).tolist():
        mine = np.flatnonzero(holds["lock"] == lock)
        mine = mine[np.argsort(holds["end_ns"][mine], kind="stable")]
        changed["start_ns"][mine] = _starts(holds[mine], waits[waits["lock"] == lock])
    return replace(trace, hold_chunks=((0, changed),), wait_chunks=(_with_sites(trace),))


def _with_sites(trace: Trace) -> Records:
    """Return the waits, with the place at which the holder that each names mostly took the lock."""
    holds, waits = trace.holds, trace.waits.copy()
    keys, count = np.unique(holds[["lock", "thread", "site"]], return_counts=True)
    usual = {
        (int(key["lock"]), int(key["thread"])): int(key["site"])
        for key in keys[np.argsort(count, kind="stable")]
    }
    open_sites = (waits["holder_site"] == 0) & (waits["holder"] != 0)
    for at in np.flatnonzero(open_sites).tolist():
        who = int(waits["lock"][at]), int(waits["holder"][at])
        waits["holder_site"][at] = usual.get(who, 0)
    return waits


def _with_spin_cpu(trace: Trace) -> Trace:
    process_ns = 0 if trace.status is None else int(trace.status["process_cpu_ns"])
    if not process_ns or not trace.counters["spin_ns"].any():
        return trace
    asleep_ns = int(trace.waits["park_ns"].sum())
    alive_ns = sum(
        max(0, (thread.end_ns or trace.duration_ns) - thread.start_ns)
        for thread in trace.threads.values()
    )
    share = min(1.0, process_ns / max(process_ns, alive_ns - asleep_ns))
    waits, counters = trace.waits.copy(), trace.counters.copy()
    for records in (waits, counters):
        records["spin_cpu_ns"] = (records["spin_ns"] * share).astype(np.uint64)
    return replace(trace, wait_chunks=(waits,), counter_chunks=(counters,))


def _starts(holds: Records, waits: Records) -> Integers:
    """Return the starts of holds of one lock, which are ordered by their end."""
    end = bounded(holds["end_ns"])
    start = bounded(holds["start_ns"])
    before = np.concatenate([[0], end[:-1]])
    got = np.sort(bounded(waits["end_ns"][waits["outcome"] == Outcome.ACQUIRED]))
    # Whoever this very release has let in may have it already.
    last = np.searchsorted(got, end - LATE_NS, side="left") - 1
    taken = np.where(last >= 0, np.append(got, 0)[last], 0)
    since = np.maximum(before, taken)
    known = np.where(start < end, start, np.maximum(since, _waited_since(waits, end)))
    return np.minimum(known, end)


def _waited_since(waits: Records, moment: Integers) -> Integers:
    """Return since when somebody has been waiting without a break; the moment itself if nobody."""
    order = np.argsort(waits["start_ns"], kind="stable")
    start, end = bounded(waits["start_ns"])[order], bounded(waits["end_ns"])[order]
    if not len(start):
        return moment
    until = np.maximum.accumulate(end)
    begins = np.concatenate([[True], start[1:] > until[:-1]])
    begun = np.maximum.accumulate(np.where(begins, start, 0))
    at = np.searchsorted(start, moment, side="left") - 1
    waiting = (at >= 0) & (until[at] >= moment)
    return np.where(waiting, begun[at], moment)
