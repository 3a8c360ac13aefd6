"""Waits for the GIL and holds of it: how much of each thread, and where in the code.

It takes the exact events of the layer below Python (`Trace.gil_waits`, `Trace.gil_holds`,
`Trace.gil_totals`), and says nothing where the trace has none: samples are not its business. Waits
for the GIL are no lock contention; no other table counts them.

Sums of a thread are from the totals, and so hold every wait and every hold. What is said of sites
is from the holds that made somebody wait, which is all the blame there is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contention_lab.analysis.gil_blame import caused_ns, ns_by_stack
from contention_lab.analysis.intervals import lengths_ns
from contention_lab.analysis.sites import user_frame

if TYPE_CHECKING:
    from contention_lab.trace import Frame, Lock, Thread, Trace
    from contention_lab.trace.records import Records


@dataclass(frozen=True, slots=True)
class ThreadGil:
    """The GIL in the life of one thread.

    Attributes
    ----------
    thread
        The thread.
    wall_s
        From its first event to its end, or the end of the recording.
    waits, wait_s
        How often and how long it waited for the GIL, in seconds.
    holds, held_s
        How often and how long it had the GIL.
    asked
        How often it had been asked to give the GIL up when it did: it was made to.
    share
        Of the time in which any thread had the GIL, the part in which this one had it.
    """

    thread: Thread
    wall_s: float
    waits: int
    wait_s: float
    holds: int
    held_s: float
    asked: int
    share: float

    @property
    def voluntary(self) -> int:
        """How often it gave the GIL up by itself, to sleep or to let native code run."""
        return self.holds - self.asked


@dataclass(frozen=True, slots=True)
class GilSite:
    """A place in the user's code where threads wait for the GIL or have it while others do.

    Attributes
    ----------
    site
        The innermost frame of user code; None for threads that were not running any.
    waited_s
        Threads at this place waited so long for the GIL.
    held_s
        Threads that gave it up at this place had had it so long, in holds that ended while others
        waited.
    caused_s
        So long others waited meanwhile, all together.
    """

    site: Frame | None
    waited_s: float
    held_s: float
    caused_s: float


@dataclass(frozen=True, slots=True)
class GilInLock:
    """Waits for the GIL under a lock: whoever waits for the lock waits for the GIL, too.

    Attributes
    ----------
    lock
        The innermost recorded lock that the threads held.
    waits, wait_s
        How often and how long they waited, in seconds.
    """

    lock: Lock
    waits: int
    wait_s: float


@dataclass(frozen=True, slots=True)
class GilWaits:
    """What a trace says of the GIL.

    Attributes
    ----------
    threads
        Every thread that had the GIL, those that waited longest first.
    sites
        Where, those of the longest waits first.
    wait_s
        Sum over the threads.
    held_s
        Time in which somebody had the GIL.
    held_share
        Of the recording.
    waits, wait_p50_s, wait_p99_s, wait_max_s
        How many, and how long they lasted: measured values of those recorded one by one (all of
        them, but at level `counters`, where they are 0).
    in_locks
        Waits, within `wait_s`, of threads that held a recorded lock meanwhile, the longest first.
    """

    threads: tuple[ThreadGil, ...]
    sites: tuple[GilSite, ...]
    wait_s: float
    held_s: float
    held_share: float
    waits: int
    wait_p50_s: float
    wait_p99_s: float
    wait_max_s: float
    in_locks: tuple[GilInLock, ...]

    @property
    def waits_in_locks_s(self) -> float:
        """All waits under locks together."""
        return sum(row.wait_s for row in self.in_locks)


def gil_waits(trace: Trace) -> GilWaits | None:
    """Sum up the waits for the GIL and the holds of it.

    Parameters
    ----------
    trace
        A trace.

    Returns
    -------
    GilWaits or None
        None for a trace without such events: without the layer below Python, or without a GIL.
    """
    totals = trace.gil_totals
    if not len(totals):
        return None
    held_s = float(totals["held_ns"].sum()) / 1e9
    threads = [_thread(trace, row, held_s) for row in totals]
    length = np.sort(lengths_ns(trace.gil_waits))
    return GilWaits(
        threads=tuple(sorted(threads, key=lambda row: (-row.wait_s, row.thread.id))),
        sites=_sites(trace),
        wait_s=float(totals["wait_ns"].sum()) / 1e9,
        held_s=held_s,
        held_share=min(1.0, held_s / (trace.duration_ns / 1e9)) if trace.duration_ns else 0.0,
        waits=int(totals["waits"].sum()),
        wait_p50_s=_quantile_s(length, 0.5),
        wait_p99_s=_quantile_s(length, 0.99),
        wait_max_s=_quantile_s(length, 1.0),
        in_locks=_in_locks(trace, trace.gil_waits),
    )


def _thread(trace: Trace, row: np.void, all_held_s: float) -> ThreadGil:
    thread = trace.thread(int(row["thread"]))
    end_ns = thread.end_ns or trace.duration_ns
    held_s = int(row["held_ns"]) / 1e9
    return ThreadGil(
        thread=thread,
        wall_s=max(0, end_ns - thread.start_ns) / 1e9,
        waits=int(row["waits"]),
        wait_s=int(row["wait_ns"]) / 1e9,
        holds=int(row["holds"]),
        held_s=held_s,
        asked=int(row["asked"]),
        share=held_s / all_held_s if all_held_s else 0.0,
    )


def _sites(trace: Trace) -> tuple[GilSite, ...]:
    holds = trace.gil_holds
    sums: dict[Frame | None, list[float]] = {}
    for column, by_stack in enumerate(
        (
            ns_by_stack(trace.gil_waits),
            ns_by_stack(holds),
            ns_by_stack(holds, caused_ns(trace.gil_waits, holds)),
        )
    ):
        for stack, ns in by_stack.items():
            site = user_frame(trace.stack(stack))
            sums.setdefault(site, [0.0, 0.0, 0.0])[column] += ns / 1e9
    rows = [GilSite(site, *seconds) for site, seconds in sums.items()]
    return tuple(sorted(rows, key=lambda row: (-row.waited_s, -row.held_s, str(row.site))))


def _in_locks(trace: Trace, waits: Records) -> tuple[GilInLock, ...]:
    held = waits[waits["lock"] != 0]
    ids, which = np.unique(held["lock"], return_inverse=True)
    counts = np.bincount(which, minlength=len(ids))
    seconds = np.bincount(which, weights=lengths_ns(held), minlength=len(ids)) / 1e9
    rows = [
        GilInLock(trace.lock(lock), count, wait_s)
        for lock, count, wait_s in zip(ids.tolist(), counts.tolist(), seconds.tolist(), strict=True)
    ]
    return tuple(sorted(rows, key=lambda row: (-row.wait_s, row.lock.id)))


def _quantile_s(ordered_ns: np.ndarray, share: float) -> float:
    """Return a measured value, the smallest that so large a share of all do not exceed."""
    if not len(ordered_ns):
        return 0.0
    return float(ordered_ns[max(0, int(np.ceil(share * len(ordered_ns))) - 1)]) / 1e9
